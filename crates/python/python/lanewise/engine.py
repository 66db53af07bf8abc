"""Many tables by name, which share threads and memory."""

import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from . import _lanewise
from .closing import closes_at_exit
from .errors import DtypeError
from .schema import full_schema
from .table import Table


class TableInfo(NamedTuple):
    """A table of an engine, and how it is."""

    name: str
    """Its name."""
    state: str
    """"closed", "open", "busy" (somebody opens, closes or drops it at this moment), "damaged"."""
    documents: int | None
    """Documents, if it is open."""
    why: str | None
    """What is wrong with it, if it is damaged."""


class Engine:
    """Tables by name, in a folder: each is opened when it is first used.

    The engine closes those that nobody used for longest while more than `open_tables` are open;
    a Table of it goes on to work, as the next call opens it again. `with` closes all. One process
    opens an engine at a time; its threads may use it together.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        memory_limit: int | str | None = None,
        open_tables: int | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Opens the tables of a folder, which is made if it is not there; reads only their names.

        folder: where they are, each in `tables/<name>`.
        memory_limit: bytes that all of its tables together may take, or text: "8gb", "70%" (of
            what the container or the machine has), "none". Not given: 70 %, shared with all
            other tables of the process that were given none.
        open_tables: how many are kept open for later. Not given: 256.
        num_threads: threads that build, 1 to 4096. Not given: what the process may use.

        Raises TableLockedError (open in this process or another), ArgumentError, DtypeError,
        OSError.
        """
        self._inner = _lanewise.Engine.open(
            folder, memory_limit=memory_limit, open_tables=open_tables, num_threads=num_threads
        )
        closes_at_exit(self)

    _inner: _lanewise.Engine

    def create(self, name: str, schema: Mapping[str, Any], *, dynamic: bool | str = True) -> Table:
        """Makes a table; it is on disk when this returns.

        name: 1 to 255 bytes in lower case, without spaces and \\ / * ? " < > | , # : and not
            beginning with _ - or +.
        schema, dynamic: as for Table.create().

        Raises TableExistsError, SchemaError, ArgumentError, DtypeError, MemoryLimitError,
        OSError.
        """
        return Table._of(self._inner.create(_named(name), full_schema(schema, dynamic)))

    def table(self, name: str) -> Table:
        """The table of this name; engine[name] is the same.

        Raises TableMissingError; TableDamagedError, and the table is put aside; MemoryLimitError,
        OSError.
        """
        return Table._of(self._inner.table(_named(name)))

    def retry(self, name: str) -> Table:
        """As table(); what was put aside is tried again, for when somebody has mended it.

        Raises what table() raises.
        """
        return Table._of(self._inner.retry(_named(name)))

    def drop(self, name: str) -> None:
        """Drops a table, damaged or not; it is gone from the disk when this returns.

        Raises TableMissingError, OSError.
        """
        self._inner.drop(_named(name))

    def names(self) -> list[str]:
        """The names of all tables, ascending."""
        return self._inner.names()

    def tables(self) -> list[TableInfo]:
        """All tables by ascending name, and how they are. Opens none."""
        return [TableInfo(*one) for one in self._inner.list()]

    def memory(self) -> dict[str, Any]:
        """Memory of the tables together, as Table.memory() says it."""
        return self._inner.memory()

    def close(self) -> None:
        """Closes all tables once calls of other threads have ended. Closing twice is fine."""
        self._inner.close()

    @property
    def path(self) -> os.PathLike[str]:
        """The folder."""
        return self._inner.path

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._inner.closed

    def __getitem__(self, name: str) -> Table:
        """As table()."""
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a table of this name."""
        return name in self._inner.names()

    def __iter__(self) -> Iterator[str]:
        """The names, ascending."""
        return iter(self._inner.names())

    def __len__(self) -> int:
        """Number of tables."""
        return len(self._inner.names())

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

    def __reduce__(self) -> str:
        """Refuses: its tables are on disk."""
        raise TypeError("a lanewise.Engine is neither copied nor pickled")

    def __repr__(self) -> str:
        """Folder and number of tables."""
        said = "closed" if self.closed else f"{len(self)} tables"
        return f"<lanewise.Engine {str(self.path)!r}, {said}>"


def _named(name: Any) -> str:
    if not isinstance(name, str):
        raise DtypeError(f"name must be str, not {type(name).__name__}", "name")
    return name
