"""Exact search, recall, and how many dimensions the data seem to have near a query.

A library's ids are judged by the true distance of the vectors they name, which this file
computes itself, so that ties count for whichever twin was returned and no library's own
distances are believed. Unit vectors are ordered by squared L2 as by cosine.
"""

import hashlib
import os
from pathlib import Path

import numpy as np

from .dataset import Dataset

# Equal sums of float64 may differ in the last bits when added in another order.
SLACK = 1 + 1e-12
# This many more candidates are ranked by exact distances: the expanded form rounds.
EXTRA = 16
BASE_BLOCK = 16_384
QUERY_BLOCK = 256
NEIGHBOURS = 100
"""How many true neighbours are kept: enough for the local dimension."""


def distances(data: Dataset, ids: np.ndarray) -> np.ndarray:
    """Distances (m, k) in float64 of `ids` (m, k) to their queries: squared L2, or bits.

    An id outside the base, and the repetition of an id in its row, is infinitely far.
    """
    ids = np.asarray(ids, np.int64)
    bad = (ids < 0) | (ids >= len(data.base))
    for column in range(1, ids.shape[1]):
        bad[:, column] |= (ids[:, :column] == ids[:, column : column + 1]).any(axis=1)
    known = np.where(bad, 0, ids)
    result = np.empty(ids.shape, np.float64)
    for start in range(0, len(ids), QUERY_BLOCK):
        rows = slice(start, min(start + QUERY_BLOCK, len(ids)))
        found, queries = data.base[known[rows]], data.queries[rows, None, :]
        if data.metric == "hamming":
            result[rows] = np.bitwise_count(found ^ queries).sum(axis=2, dtype=np.int64)
        else:
            difference = found.astype(np.float64) - queries
            result[rows] = np.einsum("qkd,qkd->qk", difference, difference)
    result[bad] = np.inf
    return result


def nearest(data: Dataset, k: int) -> np.ndarray:
    """Ids (m, min(k, n)) of the exact nearest neighbours, nearest first."""
    take = min(k + EXTRA, len(data.base))
    # Around a centre the expanded form loses little to cancellation.
    centre = _coordinates(data, data.base[:BASE_BLOCK]).mean(axis=0)
    queries = _coordinates(data, data.queries) - centre
    scores = np.full((len(queries), take), np.inf)
    ids = np.zeros((len(queries), take), np.int64)
    for start in range(0, len(data.base), BASE_BLOCK):
        block = _coordinates(data, data.base[start : start + BASE_BLOCK]) - centre
        norms = np.einsum("nd,nd->n", block, block)
        for first in range(0, len(queries), QUERY_BLOCK):
            rows = slice(first, first + QUERY_BLOCK)
            new = norms - 2 * (queries[rows] @ block.T)
            best = _smallest(new, take)
            merged = np.hstack([scores[rows], np.take_along_axis(new, best, axis=1)])
            named = np.hstack([ids[rows], best + start])
            kept = _smallest(merged, take)
            scores[rows] = np.take_along_axis(merged, kept, axis=1)
            ids[rows] = np.take_along_axis(named, kept, axis=1)
    order = np.argsort(distances(data, ids), axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, order, axis=1)


def cached_nearest(data: Dataset, k: int, cache: Path) -> np.ndarray:
    """`nearest`, kept in `cache` under a digest of everything the answer depends on."""
    digest = hashlib.blake2b(digest_size=12)
    for part in (data.base, data.queries):
        digest.update(repr((part.shape, part.dtype.str, data.metric, k)).encode())
        for start in range(0, len(part), BASE_BLOCK):
            digest.update(np.ascontiguousarray(part[start : start + BASE_BLOCK]))
    path = cache / f"nearest-{digest.hexdigest()}.npy"
    try:
        ids = np.load(path, allow_pickle=False)
        shape = (len(data.queries), min(k, len(data.base)))
        if ids.shape == shape and np.isfinite(distances(data, ids)).all():
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

    `threshold` (m,): the true distance of each query's k-th neighbour. `ids` may be those
    of the first queries only.
    """
    found = distances(data, ids) <= threshold[: len(ids), None] * SLACK
    return float(found.mean())


def local_dimension(data: Dataset, ids: np.ndarray) -> float:
    """The median over the queries of the local intrinsic dimension at their neighbours `ids`.

    The estimate of Levina & Bickel (2004): how fast the number of vectors within a radius
    grows with it. Distances are L2's, or bits.
    """
    radii = distances(data, ids)
    if data.metric != "hamming":
        radii = np.sqrt(radii)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(radii[:, -1:]) - np.log(radii[:, :-1])
    logs[~np.isfinite(logs)] = 0  # a copy of the query says nothing about radii
    means = logs.sum(axis=1) / np.maximum((logs > 0).sum(axis=1), 1)
    return float(np.median(1 / means[means > 0])) if (means > 0).any() else 0.0


def _coordinates(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Rows in float64 whose squared L2 is the metric: bits become 0 and 1."""
    if data.metric == "hamming":
        rows = np.unpackbits(rows, axis=1, bitorder="little")
    return rows.astype(np.float64)


def _smallest(scores: np.ndarray, take: int) -> np.ndarray:
    """Columns (m, min(take, columns)) of the smallest scores of each row, in no order."""
    take = min(take, scores.shape[1])
    return np.argpartition(scores, take - 1, axis=1)[:, :take]
