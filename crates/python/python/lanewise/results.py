"""What a search returns."""

from typing import Self

import numpy as np
from numpy.typing import NDArray


class Found(tuple[NDArray[np.int64], NDArray[np.float32]]):
    """Found vectors: unpacks into `ids, distances`.

    plan: how the queries were answered, and the work done. The number of queries by plan:
    "exact" (every vector that may be a result was compared), "graph", "filtered_graph"
    (walked around vectors that fail the filter), "lists" (scanned), "codes" (all compared, the best ordered by the vectors); "distances" (vectors
    compared) and "hops" (graph nodes expanded), of all queries together.
    """

    plan: dict[str, int]

    def __new__(
        cls, ids: NDArray[np.int64], distances: NDArray[np.float32], plan: dict[str, int]
    ) -> Self:
        """Ids and distances, both of shape (k,) or (n, k)."""
        found = super().__new__(cls, (ids, distances))
        found.plan = plan
        return found

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the vectors found, nearest first."""
        return self[0]

    @property
    def distances(self) -> NDArray[np.float32]:
        """Their distances, ascending."""
        return self[1]
