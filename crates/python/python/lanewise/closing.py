"""What is closed at exit, before the threads that search end."""

import atexit
import contextlib
import weakref
from typing import Any, Protocol

from . import _lanewise


class _Closes(Protocol):
    _inner: Any


_open: "weakref.WeakSet[_Closes]" = weakref.WeakSet()


def closes_at_exit(opened: _Closes) -> None:
    """Has a Table or an Engine closed at exit, if it lives that long."""
    _open.add(opened)


def _close_all() -> None:
    """What a thread still works with is left as it is, which a table survives."""
    for one in list(_open):
        # Interrupted, it is closed but for what would have made the next opening fast.
        with contextlib.suppress(KeyboardInterrupt):
            one._inner.close(wait=False)
    _lanewise.end_pool()


atexit.register(_close_all)
