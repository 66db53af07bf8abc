"""What Lanewise raises and warns of.

File system errors are Python's own `OSError` with the file's name, and a lack of
memory is `MemoryError`.
"""

from typing import Any


class Error(Exception):
    """Anything that Lanewise raises of its own."""


class ArgumentError(Error, ValueError):
    """An argument's value or shape cannot be used; the message says what can.

    `argument` is the argument's name.
    """

    argument: str

    def __init__(self, message: str, argument: str = "") -> None:
        super().__init__(message)
        self.argument = argument


class DtypeError(ArgumentError, TypeError):
    """An argument's type, or an array's dtype, cannot be used."""


class IdError(ArgumentError, KeyError):
    """An id names no vector of the index, or no document of the table."""

    __str__ = Exception.__str__


class FormatError(Error, ValueError):
    """A file is not an index or a table's, is damaged, or is of a newer version."""


class IsaError(Error):
    """`LANEWISE_ISA` names no instruction-set level that this CPU can run."""


class SchemaError(ArgumentError):
    """A schema makes no sense; the message names the field."""


class TableExistsError(Error, FileExistsError):
    """There is a table in the folder, or of this name, already."""


class TableMissingError(Error, FileNotFoundError):
    """There is no table in the folder, or none of this name."""


class TableLockedError(Error, OSError):
    """The table is open already, in this process or another: one opens it at a time."""


class TableClosedError(Error, ValueError):
    """The table or engine was closed, or belongs to the process that this one was forked from."""


class TableDamagedError(FormatError):
    """An engine's table is damaged, and was put aside until Engine.retry().

    `name` is the table's name, `why` what is wrong with it.
    """

    name: str
    why: str

    def __init__(self, message: str, name: str = "", why: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.why = why


class MemoryLimitError(Error, MemoryError):
    """A use of memory would exceed the limit, and was refused before anything was taken.

    `purpose`: "open", "write", "seal", "merge" or "search". `asked`: bytes. `limit`: bytes, and
    `in_use`: bytes by purpose; both None if too many waited for memory already: `waiting`.
    """

    def __init__(
        self,
        message: str,
        purpose: str = "",
        asked: int = 0,
        limit: int | None = None,
        in_use: dict[str, int] | None = None,
        waiting: int | None = None,
    ) -> None:
        super().__init__(message)
        self.purpose = purpose
        self.asked = asked
        self.limit = limit
        self.in_use = in_use
        self.waiting = waiting


class ConflictError(Error):
    """A write's condition does not hold: the document was written by somebody else.

    `id` is the document's id, `found` the sequence number that it has now (None: it is not
    there; 0: the same call wrote it).
    """

    id: str
    found: int | None

    def __init__(self, message: str, id: str = "", found: int | None = None) -> None:
        super().__init__(message)
        self.id = id
        self.found = found


class WriteError(Error):
    """Some documents of a put_many() were refused; all others are written and on disk.

    `written` is what was done, a WrittenMany; its `errors` say what was wrong with which.
    """

    written: Any

    def __init__(self, message: str, written: Any = None) -> None:
        super().__init__(message)
        self.written = written


class DurabilityError(Error, OSError):
    """The disk failed: what this call wrote may not survive a crash, or nothing can be written.

    What was acknowledged before is on disk. Open the table again once the disk is mended.
    """


class BusyError(Error):
    """Too many searches wait already: ask again a little later."""


class DeadlineError(Error, TimeoutError):
    """A search took longer than its timeout, and was given up."""


class FewerResultsWarning(UserWarning):
    """A search asked for more vectors than the index holds, and returned all of them."""


def of_document(error: Exception) -> Exception:
    """What a batch says of its only document, as of the argument of put()."""
    if isinstance(error, ArgumentError):
        message = str(error).replace("documents[0]", "document")
        argument = error.argument.replace("documents[0]", "document")
        return type(error)(message, argument)
    return error
