"""One small class per library, behind one protocol. Nothing here is timed or judged.

A library is imported when its adapter is made, inside the worker that runs it: an
import that fails makes that one row "not run" with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Graph:
    """HNSW's parameters, the same for every library (level 0 holds 2 m links)."""

    m: int = 16
    ef_construction: int = 200


class NotApplicable(Exception):
    """This data cannot be given to this index; the text says why."""


class Adapter(Protocol):
    """A library's HNSW over squared L2. Made in its own process, used by one thread."""

    def release(self) -> str:
        """The package and its version."""

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        """`rows` (n, dim) in the form the library takes; outside every clock."""

    def build(self, rows: np.ndarray, graph: Graph, threads: int) -> None:
        """A new index over prepared rows; row i has id i. Drops the former index first."""

    def configure(self, ef: int, threads: int) -> None:
        """What the next searches use. Apart, so that single queries do not pay for it."""

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids (m, k) for prepared queries (m, dim), m = 1 too."""

    def own_bytes(self) -> float | None:
        """Bytes per vector as the library states them; None where it does not."""

    def kernels(self) -> str:
        """The instruction set that the library says it uses; empty where it does not."""


def _f32(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows, np.float32)


def _i8(rows: np.ndarray) -> np.ndarray:
    """8-bit data as i8; shifting unsigned values by 128 leaves every L2 distance as it was."""
    if rows.dtype == np.uint8:
        return (rows ^ 0x80).view(np.int8)
    if rows.dtype == np.int8:
        return rows
    raise NotApplicable(f"holds 8-bit data exactly, this data is {rows.dtype}")


class Lanewise:
    """`lanewise.Index`, kind="hnsw"."""

    def __init__(self, dtype: str) -> None:
        import lanewise

        self.module, self.dtype = lanewise, dtype
        self.index: Any = None
        self.ef, self.threads = 0, 0

    def release(self) -> str:
        return f"lanewise {version('lanewise')}"

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        return _f32(rows) if self.dtype == "f32" else _i8(rows)

    def build(self, rows: np.ndarray, graph: Graph, threads: int) -> None:
        self.index = None
        self.index = self.module.Index(
            rows.shape[1],
            metric="l2",
            dtype=self.dtype,
            kind="hnsw",
            m=graph.m,
            ef_construction=graph.ef_construction,
            seed=0,
        )
        self.index.add(rows, num_threads=threads)

    def configure(self, ef: int, threads: int) -> None:
        self.ef, self.threads = ef, threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k=k, ef_search=self.ef, num_threads=self.threads)[0]

    def own_bytes(self) -> float | None:
        return self.index.info()["bytes_per_vector"]

    def kernels(self) -> str:
        return self.index.info()["kernels"][f"l2_{self.dtype}"]


class Hnswlib:
    """hnswlib: float32, compiled on install for the machine at hand."""

    def __init__(self) -> None:
        import hnswlib

        self.module = hnswlib
        self.index: Any = None
        self.threads = 0

    def release(self) -> str:
        return f"hnswlib {version('hnswlib')}"

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        return _f32(rows)

    def build(self, rows: np.ndarray, graph: Graph, threads: int) -> None:
        self.index = None
        self.index = self.module.Index("l2", rows.shape[1])
        self.index.init_index(len(rows), M=graph.m, ef_construction=graph.ef_construction)
        self.index.add_items(rows, num_threads=threads)

    def configure(self, ef: int, threads: int) -> None:
        self.index.set_ef(ef)
        self.threads = threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.knn_query(queries, k, num_threads=self.threads)[0].astype(np.int64)

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return "chosen on install"


class Faiss:
    """faiss's HNSW over float32 (`codes=None`) or over a scalar quantiser's codes.

    `QT_8bit` learns a range per dimension and rounds; `QT_8bit_direct` keeps unsigned
    8-bit data as it is, without loss.
    """

    def __init__(self, codes: str | None) -> None:
        import faiss

        self.faiss, self.codes = faiss, codes
        self.index: Any = None

    def release(self) -> str:
        return f"faiss-cpu {version('faiss-cpu')}"

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        if self.codes == "QT_8bit_direct" and rows.dtype != np.uint8:
            raise NotApplicable(f"holds unsigned 8-bit data exactly, this data is {rows.dtype}")
        return _f32(rows)

    def build(self, rows: np.ndarray, graph: Graph, threads: int) -> None:
        self.index = None
        dim = rows.shape[1]
        if self.codes is None:
            self.index = self.faiss.IndexHNSWFlat(dim, graph.m)
        else:
            codes = getattr(self.faiss.ScalarQuantizer, self.codes)
            self.index = self.faiss.IndexHNSWSQ(dim, codes, graph.m)
        self.index.hnsw.efConstruction = graph.ef_construction
        self.faiss.omp_set_num_threads(threads)
        self.index.train(rows)
        self.index.add(rows)

    def configure(self, ef: int, threads: int) -> None:
        self.index.hnsw.efSearch = ef
        self.faiss.omp_set_num_threads(threads)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k)[1]

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        config = getattr(self.faiss, "SIMDConfig", None)
        return str(config.get_level_name()) if hasattr(config, "get_level_name") else ""


class Usearch:
    """usearch, storing f32, bf16 (exact for 8-bit values too) or i8."""

    def __init__(self, dtype: str) -> None:
        from usearch.index import Index

        self.make, self.dtype = Index, dtype
        self.index: Any = None
        self.threads = 0

    def release(self) -> str:
        return f"usearch {version('usearch')}"

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        return _i8(rows) if self.dtype == "i8" else _f32(rows)

    def build(self, rows: np.ndarray, graph: Graph, threads: int) -> None:
        self.index = None
        self.index = self.make(
            ndim=rows.shape[1],
            metric="l2sq",
            dtype=self.dtype,
            connectivity=graph.m,
            expansion_add=graph.ef_construction,
        )
        self.index.add(np.arange(len(rows)), rows, threads=threads)

    def configure(self, ef: int, threads: int) -> None:
        self.index.expansion_search = ef
        self.threads = threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        keys = self.index.search(queries, k, threads=self.threads).keys
        return keys.reshape(len(queries), -1).astype(np.int64)

    def own_bytes(self) -> float | None:
        return self.index.memory_usage / len(self.index)

    def kernels(self) -> str:
        return str(self.index.hardware_acceleration)


LIBRARIES: dict[str, Callable[[], Adapter]] = {
    "lanewise-f32": lambda: Lanewise("f32"),
    "lanewise-i8": lambda: Lanewise("i8"),
    "hnswlib": Hnswlib,
    "faiss-hnsw-flat": lambda: Faiss(None),
    "faiss-hnsw-sq8": lambda: Faiss("QT_8bit"),
    "faiss-hnsw-u8": lambda: Faiss("QT_8bit_direct"),
    "usearch-f32": lambda: Usearch("f32"),
    "usearch-bf16": lambda: Usearch("bf16"),
    "usearch-i8": lambda: Usearch("i8"),
}
OURS = ("lanewise-f32", "lanewise-i8")
