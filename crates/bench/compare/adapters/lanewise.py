"""Lanewise: every configuration is the keyword arguments of `lanewise.Index`."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import (
    EFS,
    NPROBES,
    K,
    Parameters,
    Setting,
    bytes_u8,
    floats,
    shifted,
    sweep,
)

EPSILONS = (0.0, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2)
OVERSAMPLES = (1, 1.5, 2, 3, 4, 6, 8, 16)


class Lanewise:
    """`lanewise.Index(dim, metric=…, **options)`.

    Swept: ef_search of graphs and, in its place, epsilon; nprobe of lists; with a traversal
    code oversample.
    """

    def __init__(self, **options: Any) -> None:
        import lanewise

        self.module = lanewise
        self.options = {"kind": "hnsw", "seed": 0, **options}
        self.index: Any = None
        self.arguments: dict[str, Any] = {}
        # An option that the installed version does not know is told before any data is read.
        lanewise.Index(64, **self.options)

    def release(self) -> str:
        return f"lanewise {version('lanewise')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        match self.options["dtype"]:
            case "i8":
                return shifted(rows)
            case "u8":
                return bytes_u8(rows)
            case "bits":
                return rows
            case _:
                return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        options = dict(self.options)
        if options["kind"] == "hnsw":
            options |= {"m": parameters.m, "ef_construction": parameters.ef_construction}
        if options["kind"] == "ivf":
            options.setdefault("nlist", parameters.lists(len(rows)))
        dim = rows.shape[1] * (8 if options["dtype"] == "bits" else 1)
        self.index = self.module.Index(dim, metric=metric, **options)
        self.index.add(rows, num_threads=threads)

    def settings(self) -> list[Setting]:
        coded = self.options.get("code", "none") != "none"
        ranked = {"oversample": OVERSAMPLES} if coded else {}
        match self.options["kind"]:
            case "hnsw":
                both = sweep(ef_search=EFS, **ranked) + sweep(epsilon=EPSILONS, **ranked)
                # Where more are to be ordered by the vectors than ef_search keeps, it is raised.
                return [
                    each
                    for each in both
                    if each.get("ef_search", np.inf) >= K * each.get("oversample", 1)
                ]
            case "ivf":
                return sweep(nprobe=NPROBES, **ranked)
            case _:
                return sweep(**ranked)

    def configure(self, setting: Setting, threads: int) -> None:
        self.arguments = {**setting, "num_threads": threads}

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k, **self.arguments)[0]

    def own_bytes(self) -> float | None:
        return self.index.info()["bytes_per_vector"]

    def kernels(self) -> str:
        info = self.index.info()
        metric = {"cosine": "dot", "ip": "dot"}.get(info["metric"], info["metric"])
        return info["kernels"].get(f"{metric}_{info['dtype']}", info["isa"])
