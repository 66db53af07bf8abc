"""Vectors from files: Fashion-MNIST's idx, .npz, .npy, .fvecs, .bvecs.

Files are not trusted: every length is checked against the file before it is used, and
nothing is unpickled. 8-bit data stays 8-bit (an adapter widens it if its library wants
floats); everything else becomes float32.
"""

import gzip
import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

from .errors import BenchError

BASE_IDX = "train-images-idx3-ubyte.gz"
QUERIES_IDX = "t10k-images-idx3-ubyte.gz"
IDX_BYTES_MAX = 1 << 32
IDX_U8 = 0x08


def read(path: Path, queries_path: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Base and queries, checked; BenchError says what is wrong with which.

    `path`: a folder of Fashion-MNIST's idx files, an .npz with `train` and `test`, or an
    .npy, .fvecs or .bvecs file, which then needs `queries_path` of one of these kinds.
    """
    if path.is_dir():
        base, queries = read_idx(path / BASE_IDX), read_idx(path / QUERIES_IDX)
    elif path.suffix == ".npz":
        base, queries = _read_npz(path)
    elif queries_path is None:
        raise BenchError(f"--data {path} holds no queries; give them with --queries PATH")
    else:
        base, queries = read_rows(path), read_rows(queries_path)
    base, queries = _checked(base, "base"), _checked(queries, "queries")
    if base.shape[1] != queries.shape[1]:
        raise BenchError(
            f"--queries have {queries.shape[1]} dimensions, the base has {base.shape[1]}; "
            "give files of one data set"
        )
    if base.dtype != queries.dtype:
        base, queries = base.astype(np.float32), queries.astype(np.float32)
    return base, queries


def read_idx(path: Path) -> np.ndarray:
    """Images of a gzipped idx3 file (MNIST's format) as a (n, rows * columns) uint8 array."""
    try:
        with gzip.open(path, "rb") as file:
            header = file.read(16)
            if len(header) < 16 or header[:4] != bytes((0, 0, IDX_U8, 3)):
                raise BenchError(f"{path} is not an idx file of 8-bit images")
            shape = [int.from_bytes(header[at : at + 4], "big") for at in (4, 8, 12)]
            size = math.prod(shape)
            if not 0 < size <= IDX_BYTES_MAX:
                raise BenchError(f"{path}: its header promises {size} bytes of images")
            pixels = file.read(size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BenchError(f"cannot read {path}: {error}") from error
    if len(pixels) != size:
        raise BenchError(
            f"{path}: its header promises {size} bytes of images, it holds another number"
        )
    return np.frombuffer(pixels, np.uint8).reshape(shape[0], -1)


def read_rows(path: Path) -> np.ndarray:
    """Vectors of an .npy, .fvecs or .bvecs file as a (n, dim) array."""
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix in (".fvecs", ".bvecs"):
            return _read_vecs(path, np.dtype("<f4" if path.suffix == ".fvecs" else "u1"))
    except (OSError, ValueError, EOFError) as error:
        raise BenchError(f"cannot read {path}: {error}") from error
    raise BenchError(
        f"{path}: unknown kind of file; give .npz, .npy, .fvecs, .bvecs or a folder of idx files"
    )


def _read_vecs(path: Path, element: np.dtype) -> np.ndarray:
    """Each row is its dimension (little-endian 32-bit), then that many elements."""
    raw = np.fromfile(path, np.uint8)
    dim = int(raw[:4].view("<i4")[0]) if len(raw) >= 4 else 0
    row_bytes = 4 + dim * element.itemsize
    if dim <= 0 or len(raw) % row_bytes:
        raise BenchError(f"{path}: {len(raw)} bytes are not whole rows of dimension {dim}")
    rows = raw.reshape(-1, row_bytes)
    if (rows[:, :4] != rows[0, :4]).any():
        raise BenchError(f"{path}: its rows are not all of dimension {dim}")
    return np.ascontiguousarray(rows[:, 4:]).view(element)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["train"], arrays["test"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise BenchError(f"cannot read arrays `train` and `test` from {path}: {error}") from error


def _checked(rows: np.ndarray, what: str) -> np.ndarray:
    if rows.ndim != 2 or 0 in rows.shape:
        raise BenchError(f"the {what} must be rows of vectors, not an array of shape {rows.shape}")
    if rows.dtype in (np.uint8, np.int8):
        return np.ascontiguousarray(rows)
    if rows.dtype.kind not in "fiu":
        raise BenchError(f"the {what} must be numbers, not {rows.dtype}")
    rows = np.ascontiguousarray(rows, np.float32)
    if not np.isfinite(rows).all():
        raise BenchError(f"the {what} hold NaN or infinite values; remove these rows")
    return rows
