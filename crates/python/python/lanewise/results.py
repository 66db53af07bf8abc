"""What searches return, and what is known of their recall."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class Found(tuple[NDArray[np.int64], NDArray[np.float32]]):
    """Found vectors: unpacks into `ids, distances`.

    plan: how the queries were answered, and the work done. The number of queries by plan:
    "exact" (every vector that may be a result was compared), "graph", "filtered_graph"
    (walked around vectors that fail the filter), "lists" (scanned), "codes" (all compared,
    the best ordered by the vectors); "distances" (vectors compared) and "hops" (graph nodes
    expanded), of all queries together.
    """

    plan: dict[str, int]

    def __new__(
        cls, ids: NDArray[np.int64], distances: NDArray[np.float32], plan: dict[str, int]
    ) -> Self:
        """Ids and distances, both of shape (k,) or (n, k)."""
        found = super().__new__(cls, (ids, distances))
        found.plan = plan
        return found

    def __getnewargs__(self) -> tuple[Any, ...]:
        """What copies, and other processes, make it of."""
        return (*self, self.plan)

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the vectors found, nearest first."""
        return self[0]

    @property
    def distances(self) -> NDArray[np.float32]:
        """Their distances, ascending."""
        return self[1]


class FoundRange:
    """All vectors within a radius of each query.

    Iterating gives a pair `ids, distances` for each query, as does indexing by its place;
    len() is the number of queries.

    lims: int64 of shape (n + 1,); ids[lims[i]:lims[i + 1]] are those of query i, nearest
    first, distances likewise.
    plan: as of a Found; each query is counted once, for the last search that it took.
    """

    def __init__(
        self,
        lims: NDArray[np.int64],
        distances: NDArray[np.float32],
        ids: NDArray[np.int64],
        plan: dict[str, int],
    ) -> None:
        """Results query after query, and where each query's end."""
        self.lims = lims
        self.distances = distances
        self.ids = ids
        self.plan = plan

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.lims) - 1

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids and distances of one query."""
        place = range(len(self))[query]
        part = slice(self.lims[place], self.lims[place + 1])
        return self.ids[part], self.distances[part]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Ids and distances of each query."""
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        """How many there are."""
        return f"<lanewise.FoundRange of {len(self.ids)} vectors for {len(self)} queries>"


class Group(NamedTuple):
    """The vectors of one group that are nearest to a query."""

    key: Any
    """What the groups gave for its vectors."""
    ids: NDArray[np.int64]
    """Its vectors, nearest first."""
    distances: NDArray[np.float32]
    """Their distances, ascending."""


class RecallEstimate(NamedTuple):
    """Recall of sampled searches: the share found, its 95 % interval, and how many queries."""

    recall: float
    low: float
    high: float
    queries: int
