"""Ids of documents, as the engine has them."""

from typing import Any

import numpy as np

from .errors import DtypeError

_NUMBERED = "ids must be str, or int, which becomes str"


def name_of(given: Any) -> str:
    """An id as the engine has it."""
    if isinstance(given, str):
        return given
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return str(int(given))
    raise DtypeError(f"{_NUMBERED}, not {type(given).__name__}: {given!r}", "ids")


def names_of(ids: Any) -> list[str]:
    """Several ids as the engine has them."""
    if not hasattr(ids, "__iter__"):
        raise DtypeError(f"{_NUMBERED}, not {type(ids).__name__}", "ids")
    return [name_of(one) for one in ids]
