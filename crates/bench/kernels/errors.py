"""The one error that ends a run with a message instead of a traceback."""


class BenchError(Exception):
    """Something the user can mend; the text says what and how."""
