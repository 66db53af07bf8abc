"""Which group each vector belongs to, for `Index.search_groups`."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, DtypeError


class Keys:
    """The groups' keys in the order in which they were met; their places serve as numbers.

    groups: a function from an id to its key, a mapping from ids to keys, or an array of
    keys addressed by ids. Asked for the key of an id once.
    """

    def __init__(self, groups: Any) -> None:
        """Nothing is asked for yet."""
        self.keys: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}
        self._ask = _asker(groups)

    def numbers(self, ids: NDArray[np.int64]) -> list[int]:
        """The number of the group of each of `ids`."""
        ids_list = ids.tolist()
        new = [i for i in ids_list if i not in self._known]
        for i, key in zip(new, self._ask(new), strict=True):
            try:
                place = self._places.setdefault(key, len(self.keys))
            except TypeError as error:
                message = f"groups: the key {key!r} of id {i} cannot be hashed: {error}"
                raise DtypeError(message, "groups") from error
            if place == len(self.keys):
                self.keys.append(key)
            self._known[i] = place
        return [self._known[i] for i in ids_list]


def _asker(groups: Any) -> Callable[[list[int]], Iterable[Any]]:
    """What gives the keys of ids."""
    if isinstance(groups, Mapping):
        return lambda ids: [_mapped(groups, i) for i in ids]
    if callable(groups):
        return lambda ids: [groups(i) for i in ids]
    keys = np.asarray(groups)
    if keys.ndim == 0:
        message = (
            "groups must be a function from an id to its key, a mapping from ids to keys, "
            f"or an array of keys addressed by ids, not {type(groups).__name__}"
        )
        raise DtypeError(message, "groups")

    def addressed(ids: list[int]) -> Iterable[Any]:
        outside = next((i for i in ids if not 0 <= i < len(keys)), None)
        if outside is not None:
            message = f"groups has {len(keys)} keys, none of them for id {outside}: give a mapping"
            raise ArgumentError(message, "groups")
        return keys[ids].tolist() if ids else []

    return addressed


def _mapped(groups: Mapping[Any, Any], i: int) -> Any:
    try:
        return groups[i]
    except KeyError as error:
        raise ArgumentError(f"groups has no key for id {i}: add one", "groups") from error
