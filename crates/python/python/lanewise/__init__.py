"""Vector search that uses the whole CPU.

    >>> import lanewise
    >>> index = lanewise.Index(dim=384, metric="cosine")
    >>> index.add(x)                            # x: (n, 384)
    >>> ids, distances = index.search(q, k=10)  # q: (384,) or (m, 384)

    >>> table = lanewise.Table.create("products", {"title": "text", "v": lanewise.vector(384)})
    >>> table.put({"id": "1", "title": "red shoes", "v": x})
    >>> table.search("red shoes", k=10, filter={"price": {"lt": 50}})

Importing this module starts no thread. Those of an Index live for one call at a time; those
that search tables start with the first that is opened, and end at exit.
"""

from ._lanewise import Filter, Index, Pages, __version__
from .documents import Document, Hit, Hits, SegmentInfo, Written, WrittenMany
from .engine import Engine, TableInfo
from .errors import (
    ArgumentError,
    BusyError,
    ConflictError,
    DeadlineError,
    DtypeError,
    DurabilityError,
    Error,
    FewerResultsWarning,
    FormatError,
    IdError,
    IsaError,
    MemoryLimitError,
    SchemaError,
    TableClosedError,
    TableDamagedError,
    TableExistsError,
    TableLockedError,
    TableMissingError,
    WriteError,
)
from .results import Found, FoundRange, Group, RecallEstimate
from .schema import vector
from .table import Table

__all__ = [
    "ArgumentError",
    "BusyError",
    "ConflictError",
    "DeadlineError",
    "Document",
    "DtypeError",
    "DurabilityError",
    "Engine",
    "Error",
    "FewerResultsWarning",
    "Filter",
    "FormatError",
    "Found",
    "FoundRange",
    "Group",
    "Hit",
    "Hits",
    "IdError",
    "Index",
    "IsaError",
    "MemoryLimitError",
    "Pages",
    "RecallEstimate",
    "SchemaError",
    "SegmentInfo",
    "Table",
    "TableClosedError",
    "TableDamagedError",
    "TableExistsError",
    "TableInfo",
    "TableLockedError",
    "TableMissingError",
    "WriteError",
    "Written",
    "WrittenMany",
    "__version__",
    "vector",
]
