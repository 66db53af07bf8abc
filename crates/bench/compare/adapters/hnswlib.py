"""hnswlib: float32 HNSW by its inventors, compiled on install for the machine at hand."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import EFS, Parameters, Setting, floats, sweep


class Hnswlib:
    """`hnswlib.Index`."""

    def __init__(self) -> None:
        import hnswlib

        self.module = hnswlib
        self.index: Any = None
        self.threads = 0

    def release(self) -> str:
        return f"hnswlib {version('hnswlib')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        self.index = self.module.Index("l2", rows.shape[1])
        self.index.init_index(len(rows), M=parameters.m, ef_construction=parameters.ef_construction)
        self.index.add_items(rows, num_threads=threads)

    def settings(self) -> list[Setting]:
        return sweep(ef=EFS)

    def configure(self, setting: Setting, threads: int) -> None:
        self.index.set_ef(setting["ef"])
        self.threads = threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.knn_query(queries, k, num_threads=self.threads)[0].astype(np.int64)

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return "chosen on install"
