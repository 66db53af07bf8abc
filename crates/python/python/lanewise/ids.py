"""Ids and numbers of documents, as the engine has them."""

import operator
from typing import Any

import numpy as np

from .errors import ArgumentError, DtypeError

_NUMBERED = "ids must be str, or int, which becomes str"


def name_of(given: Any) -> str:
    """An id as the engine has it."""
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError:
            wrong = f"the id {given!r} is no Unicode text (a lone surrogate)"
            raise ArgumentError(wrong, "ids") from None
        return given
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return str(int(given))
    raise DtypeError(f"{_NUMBERED}, not {type(given).__name__}: {given!r}", "ids")


def names_of(ids: Any) -> list[str]:
    """Several ids as the engine has them."""
    return [name_of(one) for one in several(ids)]


def several(ids: Any) -> Any:
    """The same, if there may be several of them: a single str is none."""
    if isinstance(ids, (str, bytes)):
        raise DtypeError(f"ids must be a list or an array of ids, not {type(ids).__name__}", "ids")
    if not hasattr(ids, "__iter__"):
        raise DtypeError(f"{_NUMBERED}, not {type(ids).__name__}", "ids")
    return ids


def whole(argument: str, given: Any) -> int:
    """A whole number, 0 or more."""
    try:
        count = operator.index(given)
    except TypeError:
        wrong = f"{argument} must be an integer, not {type(given).__name__}"
        raise DtypeError(wrong, argument) from None
    if not 0 <= count < 2**63:
        raise ArgumentError(f"{argument}={count}: use 0 or more, below 2**63", argument)
    return count
