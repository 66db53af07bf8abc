"""usearch: HNSW over floats of several widths, 8-bit integers, or bits."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import EFS, Parameters, Setting, floats, shifted, sweep


class Usearch:
    """Storing f32, bf16, f16 (exact for 8-bit values too), i8, or bits as b1.

    i8 holds 8-bit data as it is; floats it takes only at length 1, compared by cosine.
    """

    def __init__(self, dtype: str) -> None:
        from usearch.index import Index

        self.make, self.dtype = Index, dtype
        self.index: Any = None
        self.threads = 0

    def release(self) -> str:
        return f"usearch {version('usearch')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        if self.dtype == "b1":
            return np.ascontiguousarray(rows)
        if self.dtype == "i8" and metric != "cosine":
            return shifted(rows)
        return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        measure = {"b1": "hamming", "i8": "cos" if metric == "cosine" else "l2sq"}
        self.index = self.make(
            ndim=rows.shape[1] * (8 if self.dtype == "b1" else 1),
            metric=measure.get(self.dtype, "l2sq"),
            dtype=self.dtype,
            connectivity=parameters.m,
            expansion_add=parameters.ef_construction,
        )
        self.index.add(np.arange(len(rows)), rows, threads=threads)

    def settings(self) -> list[Setting]:
        return sweep(ef=EFS)

    def configure(self, setting: Setting, threads: int) -> None:
        self.index.expansion_search = setting["ef"]
        self.threads = threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        keys = self.index.search(queries, k, threads=self.threads).keys
        return keys.reshape(len(queries), -1).astype(np.int64)

    def own_bytes(self) -> float | None:
        return self.index.memory_usage / len(self.index)

    def kernels(self) -> str:
        return str(self.index.hardware_acceleration)
