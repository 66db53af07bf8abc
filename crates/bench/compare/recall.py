"""Exact search and recall, from distances that this file computes itself.

A library's ids are judged by the true squared L2 distance of the vectors they name, so
that ties count for whichever twin was returned and no library's own distances are
believed.
"""

import hashlib
import os
from pathlib import Path

import numpy as np

from .dataset import Dataset

# Equal sums of float64 may differ in the last bits when added in another order.
SLACK = 1 + 1e-12
# Float data is re-ranked from this many more candidates: the expanded form rounds.
EXTRA = 16
BASE_BLOCK = 16_384
QUERY_BLOCK = 256


def distances(data: Dataset, ids: np.ndarray) -> np.ndarray:
    """Squared L2 distances (m, k) in float64 of `ids` (m, k) to their queries.

    An id outside the base, and the repetition of an id in its row, is infinitely far.
    """
    ids = np.asarray(ids, np.int64)
    bad = (ids < 0) | (ids >= len(data.base))
    for column in range(1, ids.shape[1]):
        bad[:, column] |= (ids[:, :column] == ids[:, column : column + 1]).any(axis=1)
    known = np.where(bad, 0, ids)
    result = np.empty(ids.shape, np.float64)
    for start in range(0, len(ids), QUERY_BLOCK):
        rows = slice(start, start + QUERY_BLOCK)
        difference = data.base[known[rows]].astype(np.float64) - data.queries[rows, None, :]
        result[rows] = np.einsum("qkd,qkd->qk", difference, difference)
    result[bad] = np.inf
    return result


def nearest(data: Dataset, k: int) -> np.ndarray:
    """Ids (m, k) of the exact nearest neighbours by squared L2, nearest first."""
    take = k + EXTRA
    queries = data.queries.astype(np.float64)
    candidates = []
    for start in range(0, len(data.base), BASE_BLOCK):
        block = data.base[start : start + BASE_BLOCK].astype(np.float64)
        norms = np.einsum("nd,nd->n", block, block)
        ids = np.empty((len(queries), min(take, len(block))), np.int64)
        for first in range(0, len(queries), QUERY_BLOCK):
            rows = slice(first, first + QUERY_BLOCK)
            scores = norms - 2 * (queries[rows] @ block.T)
            ids[rows] = np.argpartition(scores, ids.shape[1] - 1, axis=1)[:, : ids.shape[1]]
        candidates.append(ids + start)
    ids = np.hstack(candidates)
    order = np.argsort(distances(data, ids), axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, order, axis=1)


def cached_nearest(data: Dataset, k: int, cache: Path) -> np.ndarray:
    """`nearest`, kept in `cache` under a digest of everything the answer depends on."""
    digest = hashlib.blake2b(digest_size=12)
    for part in (data.base, data.queries):
        digest.update(repr((part.shape, part.dtype.str, k)).encode())
        digest.update(part)
    path = cache / f"nearest-{digest.hexdigest()}.npy"
    try:
        ids = np.load(path, allow_pickle=False)
        if ids.shape == (len(data.queries), k) and np.isfinite(distances(data, ids)).all():
            return ids
    except (OSError, ValueError, EOFError):
        pass  # absent or damaged: made again
    ids = nearest(data, k)
    cache.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.npy")
    np.save(fresh, ids)
    fresh.rename(path)
    return ids


def recall(data: Dataset, threshold: np.ndarray, ids: np.ndarray) -> float:
    """The mean share of the k true neighbours found, ties counted as found.

    `threshold` (m,): the true squared distance of each query's k-th neighbour.
    """
    found = distances(data, ids) <= threshold[:, None] * SLACK
    return float(found.mean())
