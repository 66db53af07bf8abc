"""faiss: graphs and inverted files over floats or codes, and over bits.

Refining keeps the float32 vectors too and ranks the best k x k_factor by them.
"""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import (
    EFS,
    NPROBES,
    OVERSAMPLES,
    NotApplicable,
    Parameters,
    Setting,
    bytes_u8,
    floats,
    sweep,
)


class _Faiss:
    """What all of faiss's indexes share; a subclass builds and sweeps."""

    def __init__(self) -> None:
        import faiss

        self.faiss = faiss
        self.index: Any = None
        self.inner: Any = None

    def release(self) -> str:
        return f"faiss-cpu {version('faiss-cpu')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return floats(rows)

    def fill(self, rows: np.ndarray, threads: int, refine: bool = False) -> None:
        """Trains `self.inner` and adds the rows to it, refined or not."""
        self.faiss.omp_set_num_threads(threads)
        self.index = self.faiss.IndexRefineFlat(self.inner) if refine else self.inner
        self.index.train(rows)
        self.index.add(rows)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k)[1]

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        config = getattr(self.faiss, "SIMDConfig", None)
        return str(config.get_level_name()) if hasattr(config, "get_level_name") else ""


class FaissGraph(_Faiss):
    """HNSW over float32 ("Flat") or over a scalar quantiser's codes.

    `QT_8bit` learns a range per dimension and rounds; `QT_8bit_direct` keeps unsigned
    8-bit data as it is, without loss.
    """

    def __init__(self, codes: str, refine: bool = False) -> None:
        super().__init__()
        self.codes, self.refine = codes, refine

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        if self.codes == "QT_8bit_direct":
            rows = bytes_u8(rows)
        return super().prepare(rows, metric)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = self.inner = None
        dim, m = rows.shape[1], parameters.m
        if self.codes == "Flat":
            self.inner = self.faiss.IndexHNSWFlat(dim, m)
        else:
            codes = getattr(self.faiss.ScalarQuantizer, self.codes)
            self.inner = self.faiss.IndexHNSWSQ(dim, codes, m)
        self.inner.hnsw.efConstruction = parameters.ef_construction
        self.fill(rows, threads, self.refine)

    def settings(self) -> list[Setting]:
        factors = {"k_factor": OVERSAMPLES[:2]} if self.refine else {}
        return sweep(ef=EFS, **factors)

    def configure(self, setting: Setting, threads: int) -> None:
        self.inner.hnsw.efSearch = setting["ef"]
        if self.refine:
            self.index.k_factor = setting["k_factor"]
        self.faiss.omp_set_num_threads(threads)


class FaissLists(_Faiss):
    """An inverted file over `codes` as faiss's index factory names them.

    `{half_dim}` in it stands for half the dimensions: PQ with four bits for two of them.
    """

    def __init__(self, codes: str, refine: bool = False) -> None:
        super().__init__()
        self.codes, self.refine = codes, refine

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = self.inner = None
        dim = rows.shape[1]
        if "half_dim" in self.codes and dim % 2:
            raise NotApplicable(f"takes dimensions by twos, this data has {dim}")
        codes = self.codes.format(half_dim=dim // 2)
        spec = f"IVF{parameters.lists(len(rows))},{codes}"
        self.inner = self.faiss.index_factory(dim, spec)
        self.fill(rows, threads, self.refine)

    def settings(self) -> list[Setting]:
        factors = {"k_factor": OVERSAMPLES} if self.refine else {}
        return sweep(nprobe=NPROBES, **factors)

    def configure(self, setting: Setting, threads: int) -> None:
        self.inner.nprobe = setting["nprobe"]
        if self.refine:
            self.index.k_factor = setting["k_factor"]
        self.faiss.omp_set_num_threads(threads)


class FaissBinary(_Faiss):
    """Bits by Hamming distance: "hnsw", "ivf" or "flat"."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return np.ascontiguousarray(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = self.inner = None
        dim = 8 * rows.shape[1]
        if self.kind == "hnsw":
            self.inner = self.faiss.IndexBinaryHNSW(dim, parameters.m)
            self.inner.hnsw.efConstruction = parameters.ef_construction
        elif self.kind == "ivf":
            self.quantizer = self.faiss.IndexBinaryFlat(dim)  # the index keeps only a pointer
            lists = parameters.lists(len(rows))
            self.inner = self.faiss.IndexBinaryIVF(self.quantizer, dim, lists)
        else:
            self.inner = self.faiss.IndexBinaryFlat(dim)
        self.fill(rows, threads)

    def settings(self) -> list[Setting]:
        return sweep(**{"hnsw": {"ef": EFS}, "ivf": {"nprobe": NPROBES}}.get(self.kind, {}))

    def configure(self, setting: Setting, threads: int) -> None:
        if self.kind == "hnsw":
            self.inner.hnsw.efSearch = setting["ef"]
        elif self.kind == "ivf":
            self.inner.nprobe = setting["nprobe"]
        self.faiss.omp_set_num_threads(threads)
