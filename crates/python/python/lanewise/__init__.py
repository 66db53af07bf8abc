"""Vector search that uses the whole CPU.

    >>> import lanewise
    >>> index = lanewise.Index(dim=384, metric="cosine")
    >>> index.add(x)                            # x: (n, 384)
    >>> ids, distances = index.search(q, k=10)  # q: (384,) or (m, 384)

Importing this module starts no thread; threads live for one call at a time.
"""

from ._lanewise import Filter, Index, Pages, __version__
from .errors import (
    ArgumentError,
    DtypeError,
    Error,
    FewerResultsWarning,
    FormatError,
    IdError,
    IsaError,
)
from .results import Found, FoundRange, Group, RecallEstimate

__all__ = [
    "ArgumentError",
    "DtypeError",
    "Error",
    "FewerResultsWarning",
    "Filter",
    "FormatError",
    "Found",
    "FoundRange",
    "Group",
    "IdError",
    "Index",
    "IsaError",
    "Pages",
    "RecallEstimate",
    "__version__",
]
