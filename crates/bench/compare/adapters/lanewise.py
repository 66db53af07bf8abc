"""Lanewise: every configuration is the keyword arguments of `lanewise.Index`."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import (
    EFS,
    NPROBES,
    OVERSAMPLES,
    Parameters,
    Setting,
    bytes_u8,
    floats,
    shifted,
    sweep,
)


class Lanewise:
    """`lanewise.Index(dim, metric=…, **options)`.

    Swept: ef_search of graphs, nprobe of lists, and with a traversal code oversample.
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
        values: dict[str, Any] = {}
        if self.options["kind"] == "hnsw":
            values["ef_search"] = EFS
        if self.options["kind"] == "ivf":
            values["nprobe"] = NPROBES
        if self.options.get("code", "none") != "none":
            values["oversample"] = (1, *OVERSAMPLES)
        return sweep(**values)

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
