"""The data sets by name, each prepared once into a folder of the cache."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from . import files, generate, wordnet
from .dataset import store, unit
from .fashion import fashion_mnist

QUERIES_LEN = 1_000
QUICK_BASE_LEN = 10_000
LARGE_BASE_LEN = 1_000_000

Maker = Callable[[Path, int | None, Path], tuple[str, str]]
"""(cache, rows or None for all, folder to write into) to (metric, about)."""


def prepared(name: str, cache: Path, quick: bool) -> Path:
    """The folder of a data set, made if it is not there; `quick` takes 10,000 vectors."""
    base_len = QUICK_BASE_LEN if quick else None
    folder = cache / "compare" / (f"{name}-quick" if quick else name)
    return store(folder, partial(DATASETS[name], cache, base_len))


def given(path: Path, queries: Path | None, metric: str, cache: Path, quick: bool) -> Path:
    """The folder of the user's own data; made anew each time, the files may have changed."""

    def write(scratch: Path) -> tuple[str, str]:
        base, asked = files.read(path, queries)
        base = base[: QUICK_BASE_LEN if quick else None]
        return _save(scratch, base, asked[:QUERIES_LEN], metric, f"{path}, as given")

    folder = cache / "compare" / "given"
    (folder / "about.json").unlink(missing_ok=True)
    return store(folder, write)


def _fashion_mnist(cache: Path, base_len: int | None, scratch: Path) -> tuple[str, str]:
    base, queries = files.read(fashion_mnist(cache))
    about = "Fashion-MNIST's training images; queries: test images"
    return _save(scratch, base[:base_len], queries[:QUERIES_LEN], "l2", about)


def _wordnet(cache: Path, base_len: int | None, scratch: Path) -> tuple[str, str]:
    base, queries = wordnet.vectors(cache, base_len, QUERIES_LEN)
    about = "WordNet's words and definitions through all-MiniLM-L6-v2; queries: held-out ones"
    return _save(scratch, base, queries, "cosine", about)


def _sift_like(_cache: Path, base_len: int | None, scratch: Path) -> tuple[str, str]:
    generate.write(scratch, generate.sift_like(), 128, base_len or LARGE_BASE_LEN, QUERIES_LEN)
    return "l2", (
        "generated: SIFT-like, a bent surface without clusters (generate.py says how, and that "
        "it is kinder to graphs than real data)"
    )


def _bits(_cache: Path, base_len: int | None, scratch: Path) -> tuple[str, str]:
    generate.write(scratch, generate.planted_bits(), 96, base_len or LARGE_BASE_LEN, QUERIES_LEN)
    return "hamming", (
        "generated: 768 bits, planted clusters that overlap (generate.py says how, and that "
        "they flatter lists)"
    )


def _save(
    scratch: Path, base: np.ndarray, queries: np.ndarray, metric: str, about: str
) -> tuple[str, str]:
    if metric == "cosine":
        base, queries = unit(base), unit(queries)
    np.save(scratch / "base.npy", base)
    np.save(scratch / "queries.npy", queries)
    return metric, about


DATASETS: dict[str, Maker] = {
    "fashion-mnist": _fashion_mnist,
    "wordnet": _wordnet,
    "sift-like": _sift_like,
    "bits": _bits,
}
