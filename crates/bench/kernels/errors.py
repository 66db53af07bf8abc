"""The one error that ends a run with a message instead of a traceback."""

from compare.errors import BenchError

__all__ = ["BenchError"]
