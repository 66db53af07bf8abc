"""Which indexes are compared: a name and one line each. Names of ours begin with `lanewise-`.

A configuration that the installed library does not know is a row "not run" with the
library's own words, so one that is still to come may stand here.
"""

from collections.abc import Callable
from functools import partial

from .faiss import FaissBinary, FaissGraph, FaissLists
from .hnswlib import Hnswlib
from .lanewise import Lanewise
from .ngt import Ngt
from .protocol import Adapter
from .scann import Scann
from .svs import Svs
from .usearch import Usearch
from .vsag import Vsag

Make = Callable[[], Adapter]
"""Picklable: the adapter is made in its worker."""

VECTORS: dict[str, Make] = {
    "lanewise-f32": partial(Lanewise, dtype="f32"),
    "lanewise-f16": partial(Lanewise, dtype="f16"),
    "lanewise-bf16": partial(Lanewise, dtype="bf16"),
    "lanewise-i8": partial(Lanewise, dtype="i8"),
    "lanewise-u8": partial(Lanewise, dtype="u8"),
    "lanewise-f32-code-i8": partial(Lanewise, dtype="f32", code="i8"),
    "lanewise-f16-code-i8": partial(Lanewise, dtype="f16", code="i8"),
    "lanewise-f16-code-i4": partial(Lanewise, dtype="f16", code="i4"),
    "lanewise-f16-code-bits": partial(Lanewise, dtype="f16", code="bits"),
    "lanewise-u8-code-i4": partial(Lanewise, dtype="u8", code="i4"),
    "lanewise-ivf-f16-pq4": partial(Lanewise, kind="ivf", dtype="f16", code="pq4"),
    "lanewise-ivf-u8-pq4": partial(Lanewise, kind="ivf", dtype="u8", code="pq4"),
    "hnswlib": Hnswlib,
    "faiss-hnsw-flat": partial(FaissGraph, "Flat"),
    "faiss-hnsw-fp16": partial(FaissGraph, "QT_fp16"),
    "faiss-hnsw-sq8": partial(FaissGraph, "QT_8bit"),
    "faiss-hnsw-sq8-refine": partial(FaissGraph, "QT_8bit", refine=True),
    "faiss-hnsw-u8": partial(FaissGraph, "QT_8bit_direct"),
    "faiss-ivf-flat": partial(FaissLists, "Flat"),
    "faiss-ivf-pqfs-refine": partial(FaissLists, "PQ{half_dim}x4fs", refine=True),
    "faiss-ivf-rabitqfs": partial(FaissLists, "RaBitQfs"),
    "faiss-ivf-rabitqfs-refine": partial(FaissLists, "RaBitQfs", refine=True),
    "usearch-f32": partial(Usearch, "f32"),
    "usearch-bf16": partial(Usearch, "bf16"),
    "usearch-f16": partial(Usearch, "f16"),
    "usearch-i8": partial(Usearch, "i8"),
    "svs-f32": partial(Svs, "f32"),
    "svs-f16": partial(Svs, "f16"),
    "svs-u8": partial(Svs, "u8"),
    "svs-lvq8": partial(Svs, "lvq8"),
    "svs-lvq4x4": partial(Svs, "lvq4x4"),
    "svs-lvq4x8": partial(Svs, "lvq4x8"),
    "svs-leanvec8x8": partial(Svs, "leanvec8x8"),
    "scann": Scann,
    "scann-soar": partial(Scann, soar=True),
    "ngt-anng": Ngt,
    "vsag-fp32": partial(Vsag, "fp32"),
    "vsag-sq8": partial(Vsag, "sq8"),
    "vsag-rabitq": partial(Vsag, "rabitq"),
}
BITS: dict[str, Make] = {
    "lanewise-bits": partial(Lanewise, dtype="bits"),
    "lanewise-ivf-bits": partial(Lanewise, kind="ivf", dtype="bits"),
    "lanewise-bits-flat": partial(Lanewise, dtype="bits", kind="flat"),
    "faiss-binary-hnsw": partial(FaissBinary, "hnsw"),
    "faiss-binary-ivf": partial(FaissBinary, "ivf"),
    "faiss-binary-flat": partial(FaissBinary, "flat"),
    "usearch-b1": partial(Usearch, "b1"),
}


def libraries(metric: str) -> dict[str, Make]:
    """Those that are asked on data of this metric."""
    return BITS if metric == "hamming" else VECTORS


def is_ours(library: str) -> bool:
    """Whether this is a configuration of Lanewise."""
    return library.startswith("lanewise-")
