"""Vectors, and the answers that must come back: by definition, in double precision."""

import numpy as np
from numpy.typing import NDArray


def vectors(n: int, dim: int, seed: int = 1) -> NDArray[np.float32]:
    """Whole numbers without 0, so that sums are exact and every vector has a direction."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 100, (n, dim)) * rng.choice([-1, 1], (n, dim))
    return values.astype(np.float32)


def scores(space: str, rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray:
    """OpenSearch's score of each row."""
    x, q = rows.astype(np.float64), query.astype(np.float64)
    dots = x @ q
    if space == "l2":
        return 1 / (1 + ((x - q) ** 2).sum(1))
    if space == "l1":
        return 1 / (1 + np.abs(x - q).sum(1))
    if space == "linf":
        return 1 / (1 + np.abs(x - q).max(1))
    if space == "cosinesimil":
        return (1 + dots / np.linalg.norm(x, axis=1) / np.linalg.norm(q)) / 2
    assert space == "innerproduct"
    return np.where(dots >= 0, 1 + dots, 1 / (1 - np.minimum(dots, 0)))


def check(
    hits: list[tuple[str, float]],
    space: str,
    rows: NDArray[np.float32],
    query: NDArray[np.float32],
    k: int,
    allowed: NDArray[np.bool_] | None = None,
) -> None:
    """Hits `(row number, score)` are the best `k` of the allowed rows, each with its score."""
    expected = scores(space, rows, query)
    among = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed)
    best = np.sort(expected[among])[::-1][:k]
    assert len({name for name, _ in hits}) == len(hits) == len(best)
    assert {int(name) for name, _ in hits} <= set(among.tolist())
    told = [score for _, score in hits]
    # Ties may come in any order: scores are compared by place, and each hit with its own row.
    np.testing.assert_allclose(told, best, rtol=1e-5)
    np.testing.assert_allclose(told, [expected[int(name)] for name, _ in hits], rtol=1e-5)
