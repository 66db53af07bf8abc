"""What Lanewise raises and warns of.

File system errors are Python's own `OSError` with the file's name, and a lack of
memory is `MemoryError`.
"""


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
    """An id names no vector of the index."""

    __str__ = Exception.__str__


class FormatError(Error, ValueError):
    """A file is not an index, is damaged, or is of a newer version."""


class IsaError(Error):
    """`LANEWISE_ISA` names no instruction-set level that this CPU can run."""


class FewerResultsWarning(UserWarning):
    """A search asked for more vectors than the index holds, and returned all of them."""
