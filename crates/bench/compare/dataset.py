"""What is searched: base, queries and a metric, as two .npy files that every worker maps.

A folder is written under another name and renamed: it is whole or absent. Mapped pages
are shared, so that the raw vectors lie in memory once however many workers there are.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import BenchError

ABOUT = "about.json"


@dataclass(frozen=True, slots=True)
class Dataset:
    """`base` (n, columns) is indexed, `queries` (m, columns) are asked; both of one dtype.

    `metric`: "l2" and "cosine" (unit vectors, whose order is that of L2) over uint8, int8
    or float32; "hamming" over uint8 that hold eight bits each, the lowest first.
    `about`: where the vectors come from, in a sentence.
    """

    base: np.ndarray
    queries: np.ndarray
    metric: str = "l2"
    about: str = ""

    @property
    def dim(self) -> int:
        """Dimensions of a vector: columns, or bits."""
        return self.base.shape[1] * (8 if self.metric == "hamming" else 1)


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1, as float32; BenchError where one has no direction."""
    rows = np.asarray(rows, np.float32)
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not (norms > 0).all():
        raise BenchError("a vector of zeros has no cosine; remove such rows")
    return (rows / norms).astype(np.float32)


def load(folder: Path, base_len: int | None = None) -> Dataset:
    """The data set in `folder`, mapped read-only; the first `base_len` rows of its base."""
    try:
        about = json.loads((folder / ABOUT).read_text())
        base, queries = (
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("base", "queries")
        )
        return Dataset(base[:base_len], queries, about["metric"], about["about"])
    except (OSError, ValueError, KeyError) as error:
        raise BenchError(f"cannot read {folder} ({error}): remove it, it is made again") from error


def store(folder: Path, write: Callable[[Path], tuple[str, str]]) -> Path:
    """`folder`, after `write` has put base.npy and queries.npy into it, if it is not there.

    `write(scratch)` returns metric and `about`.
    """
    if (folder / ABOUT).is_file():
        return folder
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        metric, about = write(scratch)
        (scratch / ABOUT).write_text(json.dumps({"metric": metric, "about": about}) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    except OSError as error:
        raise BenchError(f"cannot write {folder}: {error.strerror}; give --cache DIR") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder
