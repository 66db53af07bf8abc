"""NGT: its neighbourhood graph ANNG. (Its quantised graphs are not to be had from pip.)"""

import tempfile
from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import Parameters, Setting, floats, sweep

EPSILONS = (
    -0.2,
    -0.1,
    -0.05,
    -0.02,
    0.0,
    0.01,
    0.02,
    0.03,
    0.05,
    0.07,
    0.09,
    0.12,
    0.15,
    0.2,
    0.25,
    0.3,
)


class Ngt:
    """`ngtpy.Index`, an index in a folder, held in memory. It has no ef_construction, and its
    batch call takes one thread whatever one asks."""

    def __init__(self) -> None:
        import ngtpy

        self.module = ngtpy
        self.index: Any = None
        self.folder = tempfile.TemporaryDirectory()

    def release(self) -> str:
        return f"ngt {version('ngt')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        self.folder.cleanup()
        self.folder = tempfile.TemporaryDirectory()
        path = f"{self.folder.name}/index"
        self.module.create(
            path, rows.shape[1], edge_size_for_creation=parameters.degree, distance_type="L2"
        )
        self.index = self.module.Index(path)
        self.index.batch_insert(rows, num_threads=threads)

    def settings(self) -> list[Setting]:
        return sweep(epsilon=EPSILONS)

    def configure(self, setting: Setting, threads: int) -> None:
        self.index.set(epsilon=setting["epsilon"], edge_size=0)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        if len(queries) == 1:
            found = self.index.search(queries[0], k, with_distance=False)
            return _filled(np.asarray(found, np.int64), k)[None]
        results = self.module.BatchResults()
        self.index.batch_search(queries, results, k, with_distance=False)
        ids = results.get_ids()
        if isinstance(ids, np.ndarray) and ids.shape == (len(queries), k):
            return ids.astype(np.int64)
        return np.array([_filled(np.asarray(each, np.int64), k) for each in ids])

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return ""


def _filled(ids: np.ndarray, k: int) -> np.ndarray:
    """Fewer than k found: the rest is -1, which is nobody."""
    return np.pad(ids[:k], (0, k - len(ids[:k])), constant_values=-1)
