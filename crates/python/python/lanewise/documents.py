"""What tables give back, and the columns that they take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, DtypeError


class Document(dict[str, Any]):
    """A document: a dict of its fields, "id" among them; of its vectors those asked for.

    id: its id. seq: number of the write that it came with. version: how often it was
    written since it was created.
    """

    id: str
    seq: int
    version: int

    def __init__(self, id: str, seq: int, version: int, fields: Mapping[str, Any]) -> None:
        """Its fields; a field "id" of its own stays as it is."""
        super().__init__({"id": id, **fields})
        self.id = id
        self.seq = seq
        self.version = version

    def __reduce__(self) -> tuple[Any, ...]:
        """What copies, and other processes, make it of."""
        return (type(self), (self.id, self.seq, self.version, dict(self)))


class Written(NamedTuple):
    """What a write did. When it is returned the write is on disk, and every search sees it."""

    id: str
    """The document's id."""
    seq: int
    """Number of the write; later ones have larger numbers."""
    version: int
    """How often the document was written since it was created."""
    outcome: str
    """"created", "updated", "deleted", or "missing": there was nothing to delete."""


class WrittenMany(NamedTuple):
    """What a put_many() did, document by document."""

    ids: list[str | None]
    """The documents' ids; None for those that were refused."""
    seqs: NDArray[np.int64]
    """Numbers of the writes; -1 for those that were refused."""
    versions: NDArray[np.int64]
    """How often each was written; -1 for those that were refused."""
    outcomes: list[str]
    """"created", "updated" or "failed"."""
    errors: list[tuple[int, Exception]]
    """Those that were refused: their places, and why."""

    def __repr__(self) -> str:
        """How many there are of each outcome."""
        counts = {outcome: self.outcomes.count(outcome) for outcome in dict.fromkeys(self.outcomes)}
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        return f"<lanewise.WrittenMany: {said or 'nothing'}>"


class SegmentInfo(NamedTuple):
    """A part of a table that is searched by itself."""

    segment: int
    """Its number."""
    sealed: bool
    """Whether it is on disk, or the head, which grows."""
    live: int
    """Documents."""
    deleted: int
    """Rows of documents that were replaced or deleted; a merge drops them."""
    uncoded: list[str]
    """Vector fields that are searched without their code, which cannot order this segment's
    vectors: a finer one, or none, would be better."""


class Columns(Sequence[dict[str, Any]]):
    """Columns of the same length as the documents that they are, made when they are asked for.

    None, and what pandas takes for missing, is left out.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Values by field."""
        for name, column in columns.items():
            if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
                wrong = f"documents: column {name!r} is of type {type(column).__name__}: give lists"
                raise DtypeError(f"{wrong} or arrays; put() takes a single document", "documents")
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            wrong = f"documents: columns differ in length: {lengths}"
            raise ArgumentError(wrong, "documents")
        self._columns = dict(columns)
        self._length = next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        """Number of documents."""
        return self._length

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """One document, or some."""
        if not isinstance(place, slice):
            return self[place : place + 1 or None][0]
        parts = [column[place] for column in self._columns.values()]
        values = [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]
        rows = zip(*values, strict=True)
        return [
            {
                name: value
                for name, value in zip(self._columns, row, strict=True)
                if value is not None
            }
            for row in rows
        ]


def columns_of(given: Any) -> dict[str, Any] | None:
    """The columns of a table in memory: a dict of them, or one of pandas, pyarrow or polars."""
    if isinstance(given, Mapping):
        return dict(given)
    if hasattr(given, "column_names") and hasattr(given, "column"):
        return {name: _of_arrow(given.column(name)) for name in given.column_names}
    if hasattr(given, "columns") and hasattr(given, "__getitem__") and hasattr(given, "shape"):
        return {name: _of_frame(given[name]) for name in given.columns}
    return None


def _of_arrow(column: Any) -> Any:
    """Lists of one length without nulls, as vectors are, without a detour over lists."""
    kind = str(column.type)
    if column.null_count == 0 and kind.startswith("fixed_size_list"):
        parts = column.chunks if hasattr(column, "chunks") else [column]
        flat = [part.flatten() for part in parts]
        if not any(part.null_count for part in flat):
            arrays = [part.to_numpy(zero_copy_only=False) for part in flat]
            width = column.type.list_size
            if arrays and width:
                return np.concatenate(arrays).reshape(-1, width)
    return column.to_pylist()


def _of_frame(column: Any) -> Any:
    """A column of pandas or polars, with None for what is missing."""
    if hasattr(column, "to_arrow"):
        return column.to_list()
    values = column.tolist()
    missing = column.isna().tolist()
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


class Hit(NamedTuple):
    """A document that was found."""

    id: str
    """Its id."""
    score: float
    """How well it fits, the greater the better."""
    distance: float | None
    """How far its vector is, if one vector was looked for and nothing else."""
    sort: list[Any]
    """What it is sorted by; search(after=...) takes it."""
    document: Document | None
    """The document, unless it was not asked for."""


class Hits(Sequence[Hit]):
    """Documents that were found, best first: a sequence of Hit.

    ids: their ids. scores: float32, the greater the better: BM25's, or what OpenSearch makes of
    a distance, or of several rankings. distances: float32, if one vector was looked for and
    nothing else, else None. sort: what each is sorted by. documents: as they were when the
    search began; None if they were not asked for. total: how many documents were found, on all
    pages; total_exact: whether just as many, or at least so many. aggs: the figures that were
    asked for. profile: how each segment was searched, if that was asked for. vectors: by field
    those of the documents, a list with an array of shape (dim,) or None for each.
    """

    def __init__(
        self,
        ids: list[str],
        seqs: list[int],
        versions: list[int],
        scores: NDArray[np.float32],
        distances: NDArray[np.float32] | None,
        sort: list[list[Any]],
        sources: list[dict[str, Any]] | None,
        total: tuple[int, bool],
        aggregations: dict[str, Any],
        profile: dict[str, Any] | None,
        vectors: dict[str, list[NDArray[Any] | None]],
    ) -> None:
        """What was found, in the same order."""
        self.ids = ids
        self.scores = scores
        self.distances = distances
        self.sort = sort
        self.documents = None
        if sources is not None:
            for field, column in vectors.items():
                for source, vector in zip(sources, column, strict=True):
                    source.update({} if vector is None else {field: vector})
            found = zip(ids, seqs, versions, sources, strict=True)
            self.documents = [Document(*one) for one in found]
        self.total, self.total_exact = total
        self.aggs = aggregations
        self.profile = profile
        self.vectors = vectors

    documents: list[Document] | None

    def __len__(self) -> int:
        """How many there are here."""
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...
    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        """One of them, or some."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return Hit(
            self.ids[place],
            float(self.scores[place]),
            None if self.distances is None else float(self.distances[place]),
            self.sort[place],
            None if self.documents is None else self.documents[place],
        )

    def __iter__(self) -> Iterator[Hit]:
        """Each of them."""
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        """The first few, one a line."""
        of = f" of {'' if self.total_exact else 'at least '}{self.total}"
        lines = [f"<lanewise.Hits: {len(self)}{of} documents"]
        for hit in self[:10]:
            by = f"{hit.score:.4f}" if hit.distance is None else f"distance {hit.distance:.4f}"
            fields = "" if hit.document is None else f"  {_short(hit.document)}"
            lines.append(f"  {hit.id}  {by}{fields}")
        if len(self) > 10:
            lines.append("  …")
        return "\n".join(lines) + ">"


def _short(document: Document) -> str:
    """A document in a line, cut where it is long."""
    text = repr({name: value for name, value in document.items() if name != "id"})
    return text if len(text) <= 100 else text[:99] + "…"
