"""What the demo measures of an index: recall, throughput, latency.

Times are of a machine that others may share: throughput is the median of a few rounds.
"""

import statistics
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .model import F32

Ids = NDArray[np.int64]
_ROUNDS = 5


class Searches(Protocol):
    """What is measured; `lanewise.Index` is one."""

    def search(
        self, q: F32, /, k: int = ..., *, ef_search: int = ..., num_threads: int | None = ...
    ) -> tuple[Ids, F32]: ...


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one setting. Latencies are of single queries on one thread, in milliseconds."""

    recall: float
    per_second_one: float
    per_second_all: float
    p50_ms: float
    p99_ms: float


def recall(found: Ids, exact: Ids) -> float:
    """Share of the exact neighbours that were found; both are (queries, k)."""
    hits = sum(len(np.intersect1d(f, e)) for f, e in zip(found, exact, strict=True))
    return hits / exact.size


def figures(
    index: Searches, queries: F32, exact: Ids, threads: int, ef_search: int = 64
) -> Figures:
    """Measures `index.search` over `queries` (n, dim) against the neighbours `exact` (n, k).

    `threads` is how many threads "all" means.
    """
    k = exact.shape[1]
    found, _ = index.search(queries, k, ef_search=ef_search)
    latencies_ms = []
    for query in queries:
        start = time.perf_counter()
        index.search(query[None], k, ef_search=ef_search, num_threads=1)
        latencies_ms.append(1e3 * (time.perf_counter() - start))
    one, many = (_per_second(index, queries, k, ef_search, n) for n in (1, threads))
    p50_ms, p99_ms = np.percentile(latencies_ms, (50, 99))
    return Figures(recall(found, exact), one, many, float(p50_ms), float(p99_ms))


def _per_second(index: Searches, queries: F32, k: int, ef_search: int, threads: int) -> float:
    spent = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        index.search(queries, k, ef_search=ef_search, num_threads=threads)
        spent.append(time.perf_counter() - start)
    return len(queries) / statistics.median(spent)
