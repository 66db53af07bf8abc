"""Tables: documents with their vectors, on disk, that lose nothing that was acknowledged.

The work is done in `_lanewise.Table`; here are the defaults, the short forms, and what goes
back to Python.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, TracebackType
from typing import Any, Self

import numpy as np

from . import _lanewise
from .closing import closes_at_exit
from .documents import (
    Columns,
    Document,
    Hits,
    SegmentInfo,
    Written,
    WrittenMany,
    columns_of,
)
from .errors import (
    ArgumentError,
    DtypeError,
    IdError,
    TableMissingError,
    WriteError,
    of_document,
)
from .filters import to_query
from .ids import name_of, names_of, several, whole
from .schema import DYNAMIC, full_schema, in_nested


class Table:
    """Documents with their vectors, in a folder of their own.

    Made by Table.create() and Table.open(), or by lanewise.Engine for many. `with` closes it. One
    process opens a table at a time; its threads may use it together: reads and searches wait for
    nothing, and writes are visible to every search, and on disk, when they return.

    A table is neither copied nor pickled, and a forked child cannot use its parent's.
    """

    def __init__(self) -> None:
        """Not to be called."""
        raise TypeError("use lanewise.Table.create(path, schema) or lanewise.Table.open(path)")

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Mapping[str, Any],
        *,
        dynamic: bool | str = True,
        num_threads: int | None = None,
        memory_limit: int | str | None = None,
    ) -> Self:
        """Makes a table, and opens it.

        path: a folder, which is made if it is not there; what it lies in must be.
        schema: fields by name: "keyword" (compared as a whole), "text" (searched by words),
            "integer", "float", "date", "boolean", "object", "nested" (objects that are searched
            one by one, by the fields "parts.text" and so on), vector(dim, ...), or a dict such
            as {"type": "text", "analyzer": "english"}.
        dynamic: what becomes of fields that the schema does not name: True, they are searched
            too; False, they are only kept; "strict", the document is refused.
        num_threads: threads that build, 1 to 4096. Not given: what the process may use.
        memory_limit: bytes that the table may take, or text: "8gb", "70%" (of what the container
            or the machine has), "none". Not given: 70 % for all such tables of the process.

        Raises SchemaError, ArgumentError, DtypeError, TableExistsError, TableLockedError,
        MemoryLimitError, OSError, IsaError.
        """
        full = full_schema(schema, dynamic)
        inner = _lanewise.Table.create(
            path, full, num_threads=num_threads, memory_limit=memory_limit
        )
        return cls._of(inner)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        num_threads: int | None = None,
        memory_limit: int | str | None = None,
    ) -> Self:
        """Opens a table: all that was acknowledged is there.

        path: its folder.
        num_threads, memory_limit: as for create().

        Raises TableMissingError, TableLockedError (open in this process or another),
        FormatError (damaged, or of a newer version), ArgumentError, DtypeError,
        MemoryLimitError, OSError, IsaError.
        """
        inner = _lanewise.Table.open(path, num_threads=num_threads, memory_limit=memory_limit)
        return cls._of(inner)

    @classmethod
    def _of(cls, inner: _lanewise.Table) -> Self:
        table = object.__new__(cls)
        table._inner = inner
        described = inner.schema
        table._fields = described["fields"]
        table._dynamic = described["dynamic"]
        closes_at_exit(table)
        return table

    _inner: _lanewise.Table
    _fields: dict[str, dict[str, Any]]
    _dynamic: str

    def put(
        self,
        document: Mapping[str, Any],
        id: str | int | None = None,
        *,
        if_absent: bool = False,
        if_seq: int | None = None,
    ) -> Written:
        """Writes a document, in place of the one that has its id: a Written.

        document: its fields: str, numbers, bools, None, datetimes (without a time zone: UTC),
            lists and dicts of these, and vectors as arrays or lists.
        id: 1 to 512 bytes; an int becomes a str. Not given: the document's "id"; if it has
            none, a new one.
        if_absent: only if no document has the id.
        if_seq: only if the document is still as the write with this number left it; get() says
            the number.

        Raises ConflictError, ArgumentError, DtypeError, DurabilityError, MemoryError, OSError.
        """
        ids = None if id is None else [name_of(id)]
        if if_seq is not None:
            if_seq = whole("if_seq", if_seq)
            if if_absent:
                wrong = "if_seq is for a document that is there, if_absent for one that is not"
                raise ArgumentError(wrong, "if_seq")
        done = self._inner.put_many([document], ids, [], if_absent=if_absent, if_seq=if_seq)
        if done["errors"]:
            raise of_document(done["errors"][0][1])
        return Written(
            done["ids"][0], int(done["seqs"][0]), int(done["versions"][0]), done["outcomes"][0]
        )

    def put_many(
        self,
        documents: Any,
        *,
        ids: Iterable[str | int | None] | None = None,
        vectors: Mapping[str, Any] | None = None,
        if_absent: bool = False,
        raise_on_error: bool = True,
        progress: bool = False,
    ) -> WrittenMany:
        """Writes many documents, each as put() does: a WrittenMany.

        documents: dicts; or columns by name (a dict of lists and arrays, or a table of pandas,
            pyarrow or polars; what is missing is left out). None: as many as vectors, empty.
        ids: one for each. Not given: the documents' "id", new ones for those that have none.
        vectors: by field an array of shape (n, dim), as lanewise.Index.add() takes it, one for
            each document: the fastest way.
        if_absent: as for put(), document by document.
        raise_on_error: whether to raise a WriteError at the end if documents were refused; all
            others are written anyway, and `errors` of what is returned, or of the error's
            `written`, says which and why.
        progress: whether to draw a bar on sys.stderr.

        It works in batches of 512; each is on disk before the next begins. What ends the call
        early (Ctrl-C, a full disk) has a note that says how many documents are in.

        Raises WriteError, ArgumentError, DtypeError, DurabilityError, MemoryError, OSError.
        """
        rows, given, arrays = self._given(documents, ids, vectors)
        done = self._inner.put_many(rows, given, arrays, if_absent=if_absent, progress=progress)
        written = WrittenMany(**done)
        if written.errors and raise_on_error:
            first = written.errors[0][1]
            raise WriteError(
                f"{len(written.errors)} of {len(rows)} documents were refused, the others are "
                f"written; the first: {first}",
                written,
            ) from first
        return written

    def load(
        self,
        documents: Any,
        *,
        ids: Iterable[str | int] | None = None,
        vectors: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> int:
        """Loads many documents, all or none; how many, each id counted once.

        documents, ids, vectors, progress: as for put_many(), but that ids are given to all
            documents or to none, and vectors come as arrays or columns.

        The fastest way to fill a table: indexes are built once, by all threads, and nothing goes
        through the log. The documents are seen, and on disk, when it returns, in place of those
        that had their ids. If one is wrong, or Ctrl-C ends it, the table is as it was.

        Raises ArgumentError, DtypeError, DurabilityError, MemoryError, OSError.
        """
        rows, given, arrays = self._given(documents, ids, vectors)
        return self._inner.load(rows, given, arrays, progress=progress)

    def get(self, id: str | int, *, vectors: str | Iterable[str] | bool = False) -> Document | None:
        """The document with an id, a dict with `id`, `seq` and `version`; None if there is none.

        vectors: a vector field or several, or True for all: the document then holds those that
            it has as they are stored (floats of metric "cosine" normalised, of dtype "f16" and
            "bf16" rounded), shape (dim,): float32, int8, uint8, or bool for dtype "bits".

        Raises DtypeError, ArgumentError; FormatError if it is damaged on disk.
        """
        return self.get_many([id], vectors=vectors)[0]

    def get_many(
        self, ids: Iterable[str | int], *, vectors: str | Iterable[str] | bool = False
    ) -> list[Document | None]:
        """The document with each id, all as of the same moment; None for those not there.

        vectors: as for get().

        Raises DtypeError, ArgumentError; FormatError if one is damaged on disk.
        """
        names = names_of(ids)
        found = self._inner.get(names, self._asked(vectors))
        made: list[Document | None] = []
        for name, one in zip(names, found, strict=True):
            if one is None:
                made.append(None)
                continue
            seq, version, fields, stored = one
            made.append(Document(name, seq, version, {**fields, **stored}))
        return made

    def delete(self, ids: str | int | Iterable[str | int], *, if_seq: int | None = None) -> int:
        """Deletes documents; how many of the ids were there.

        ids: one, or several. Those that are not there are passed over.
        if_seq: of a single id, as for put().

        Raises ConflictError, DtypeError, ArgumentError, DurabilityError, OSError.
        """
        names = names_of([ids] if isinstance(ids, (str, int, np.integer)) else ids)
        if if_seq is not None:
            if_seq = whole("if_seq", if_seq)
            if len(names) != 1:
                raise ArgumentError("if_seq is for a single id: delete one at a time", "if_seq")
        done = self._inner.delete(names, if_seq=if_seq)
        return sum(outcome == "deleted" for _, _, outcome in done)

    def search(
        self,
        query: str | Mapping[str, Any] | None = None,
        *,
        vector: Any = None,
        k: int = 10,
        filter: Mapping[str, Any] | None = None,
        sort: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None = None,
        after: Sequence[Any] | None = None,
        from_: int = 0,
        aggs: Mapping[str, Any] | None = None,
        fusion: str | Mapping[str, Any] | None = None,
        timeout: float | None = None,
        documents: bool = True,
        vectors: str | Iterable[str] | bool = False,
        exact_total: bool = True,
        profile: bool = False,
        candidates: int | None = None,
        ef_search: int = 64,
        epsilon: float | None = None,
        nprobe: int = 16,
        oversample: float | None = None,
        exact: bool = False,
    ) -> Hits:
        """The best documents, best first: Hits, a sequence of Hit.

        Found are those that match the query and the nearest of each vector, all among those that
        the filter lets through; with neither, all these. Of a vector there are always
        min(k, matches).

        query: words, looked for in all text fields; or as for filter, where a text needs any of
            the words that it is asked for. Scored by BM25.
        vector: {field: vector}, or a vector where the schema has one vector field; several
            fields are fused.
        k: how many to return.
        filter: only documents that this finds: {"price": {"lt": 50}, "color": "red"} asks for
            both; a list for any of its values; operators are eq, ne, in, lt, lte, gt, gte,
            exists, match, phrase, prefix and wildcard; a text has all of the words. Or the
            engine's form, {"bool": {"should": [...]}}: docs/tables.md.
        sort: in place of the score, fields in order: "price", {"price": "desc"},
            {"price": {"order": "desc", "missing": "_first"}}; "_score" and "_id" are known too.
        after: the `sort` values of a hit, to go on behind it.
        from_: how many of the best are passed over.
        aggs: figures over all that is found, in Elasticsearch's JSON:
            {"colors": {"terms": {"field": "color"}}}.
        fusion: how a query and vectors are ranked together: "rrf" (reciprocal rank, the usual),
            "arithmetic_mean" (of normalised scores), or a dict with parameters:
            {"rrf": {"rank_constant": 60, "weights": [1, 2]}}.
        timeout: seconds after which the search is given up.
        documents: whether to read the documents that are found.
        vectors: as for get(): the documents hold these, and the Hits' `vectors`.
        exact_total: whether all that is found is counted; if not, searches by score are faster.
        profile: whether to say how each segment was searched.
        candidates: how many of the nearest of each vector are found. Not given: k + from_, and at
            least 100 where they are fused or sorted.
        ef_search, epsilon, nprobe, oversample: as lanewise.Index.search() has them.
        exact: whether to compare all vectors that the filter lets through.

        Ctrl-C ends it at its next step.

        Raises ArgumentError, DtypeError, DeadlineError, BusyError, FormatError.
        """
        k, from_ = whole("k", k), whole("from_", from_)
        probes = [] if vector is None else self._vectors(vector)
        request: dict[str, Any] = {
            "k": k,
            "from_": from_,
            "exact_total": bool(exact_total),
            "profile": bool(profile),
        }
        if query is not None:
            request["query"] = to_query("query", query, self._fields, "or")
        if filter is not None:
            request["filter"] = to_query("filter", filter, self._fields, "and")
        if sort is not None:
            if not isinstance(sort, (str, Mapping, Sequence)):
                wrong = f"sort must be a field, or a list of fields, not {type(sort).__name__}"
                raise DtypeError(wrong, "sort")
            request["sort"] = [sort] if isinstance(sort, (str, Mapping)) else list(sort)
        if after is not None:
            request["after"] = list(after)
        if aggs is not None:
            request["aggs"] = aggs
        if fusion is not None:
            request["fusion"] = {fusion: {}} if isinstance(fusion, str) else fusion
        if candidates is None:
            ranked_alone = len(probes) == 1 and query is None and sort is None
            candidates = k + from_ if ranked_alone else max(100, k + from_)
        effort = {
            "ef_search": ef_search,
            "epsilon": epsilon,
            "nprobe": nprobe,
            "oversample": oversample,
        }
        answer = self._inner.search(
            request,
            [(field, probe, whole("candidates", candidates)) for field, probe in probes],
            effort,
            self._asked(vectors),
            exact=bool(exact),
            timeout=timeout,
            documents=bool(documents),
        )
        return Hits(**answer)

    def flush(self) -> None:
        """Seals the head: what was written is in segments then, and opening is faster.

        Searches and writes go on meanwhile. Not needed for durability.

        Raises DurabilityError, MemoryError, OSError.
        """
        self._inner.flush()

    def merge(self, **policy: Any) -> tuple[int, list[int]] | None:
        """Merges segments once, if it is worth it: the new one's number and those it replaces.

        It is also done in the background. policy: what is to differ from settings()["merge"]:
            floor_segment: bytes; smaller segments count as that large.
            segments_per_tier: how many of about the same size there may be, 2 or more.
            max_merge_at_once: 2 or more.
            max_merged_segment: bytes; none larger is made.
            deletes_allowed: share of dead rows from which on a segment is merged to be rid of
                them, 0 to 1.

        Searches and writes go on meanwhile. Ctrl-C ends it; all is then as it was.

        Raises ArgumentError, DurabilityError, MemoryError, OSError.
        """
        return self._inner.merge(policy)

    def force_merge(self, segments: int = 1) -> None:
        """Seals the head and merges until there are at most so many segments.

        segments: 1 or more; with 1 no dead rows are left.

        Searches and writes go on meanwhile. Ctrl-C ends it; no document is lost.

        Raises ArgumentError, DurabilityError, MemoryError, OSError.
        """
        self._inner.force_merge(segments)

    def settings(self) -> dict[str, Any]:
        """What can be changed while the table serves, by change_settings().

        durability: "request", a write that returned is on disk; "async", it is in the system's
            memory, survives the end of the process, and a power cut only after sync_interval_ms.
        sync_interval_ms: milliseconds.
        flush_threshold_bytes, flush_after_ms, flush_dead_rows: when the head is sealed.
        merge: which segments are merged in the background; see merge().
        """
        return self._inner.settings()

    def change_settings(self, **settings: Any) -> None:
        """Changes those settings that are given, also for when the table is opened again.

        Raises ArgumentError, DtypeError, DurabilityError, OSError.
        """
        self._inner.change_settings(settings)

    def sync(self) -> None:
        """Waits until all that was written is on disk; for durability "async".

        Raises DurabilityError.
        """
        self._inner.sync()

    def segments(self) -> list[SegmentInfo]:
        """The segments, oldest first; the last is the head."""
        return [SegmentInfo(*one) for one in self._inner.segments()]

    def stats(self) -> dict[str, Any]:
        """What the table holds, and how it does.

        documents; deleted: rows of documents that were replaced or deleted, which a merge drops;
        segments: sealed ones; path; trouble: why the last flush or merge in the background
        failed, or None.
        """
        segments = self.segments()
        return {
            "documents": sum(one.live for one in segments),
            "deleted": sum(one.deleted for one in segments),
            "segments": sum(one.sealed for one in segments),
            "path": str(self.path),
            "trouble": self._inner.trouble(),
        }

    def memory(self) -> dict[str, Any]:
        """Memory of all tables that share this one's limit.

        limit: bytes, or None. in_use: bytes by purpose: "open", "write", "seal", "merge" and
        "search". waiting: how many uses wait for memory.
        """
        return self._inner.memory()

    def close(self) -> None:
        """Closes the table once calls of other threads have ended. Closing twice is fine.

        An engine's table stays open as long as the engine likes; this object is of no use then.
        """
        self._inner.close()

    @property
    def schema(self) -> dict[str, dict[str, Any]]:
        """The fields, with all of their parameters; create() takes it."""
        return {name: dict(field) for name, field in self._fields.items()}

    @property
    def dynamic(self) -> bool | str:
        """What becomes of fields that the schema does not name; as for create()."""
        return next(given for given, text in DYNAMIC.items() if text == self._dynamic)

    @property
    def path(self) -> os.PathLike[str]:
        """The table's folder."""
        return self._inner.path

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._inner.closed

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._inner)

    def __contains__(self, id: object) -> bool:
        """Whether a document has the id."""
        return isinstance(id, (str, int, np.integer)) and self.get(name_of(id)) is not None

    def __getitem__(self, id: str | int) -> Document:
        """The document with an id; IdError, a KeyError, if there is none."""
        found = self.get(id)
        if found is None:
            raise IdError(f"no document has the id {id!r}", "id")
        return found

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
        """Refuses: a table is on disk."""
        raise TypeError(
            f"a lanewise.Table is neither copied nor pickled: send its path, {str(self.path)!r}, "
            "and open it there once it is closed here"
        )

    def __repr__(self) -> str:
        """Path, documents and fields."""
        name = f"lanewise.Table {str(self.path)!r}"
        if self.closed:
            return f"<{name}, closed>"
        try:
            documents = f"{len(self)} documents"
        except TableMissingError:
            documents = "dropped"
        fields = ", ".join(f"{name}: {field['type']}" for name, field in self._fields.items())
        return f"<{name}, {documents}, {fields}>"

    def _given(
        self, documents: Any, ids: Any, vectors: Mapping[str, Any] | None
    ) -> tuple[Sequence[Any], list[str | None] | None, list[tuple[str, Any]]]:
        """Documents, ids and arrays as the engine takes them."""
        if not isinstance(vectors, (Mapping, NoneType)):
            wrong = f"vectors must be a dict of arrays by field, not {type(vectors).__name__}"
            raise DtypeError(wrong, "vectors")
        arrays = dict(vectors or {})
        rows = self._rows(documents, arrays)
        names = (
            None if ids is None else [one if one is None else name_of(one) for one in several(ids)]
        )
        # Of no documents there are no vectors.
        brought = [
            (field, array)
            for field, array in arrays.items()
            if len(rows) or np.shape(array)[:1] != (0,)
        ]
        return rows, names, brought

    def _rows(self, documents: Any, arrays: dict[str, Any]) -> Sequence[Any]:
        """The documents as a sequence; columns of vectors go to `arrays`."""
        if documents is None:
            if not arrays:
                raise ArgumentError("documents: give documents, or vectors", "documents")
            return [{}] * len(next(iter(arrays.values())))
        columns = columns_of(documents)
        if columns is None:
            if isinstance(documents, (str, bytes)) or not hasattr(documents, "__iter__"):
                wrong = "documents must be dicts, or columns by name"
                raise DtypeError(f"{wrong}, not {type(documents).__name__}", "documents")
            return documents if isinstance(documents, list) else list(documents)
        for name, field in self._fields.items():
            # Where some have no vector, each goes with its document.
            if field["type"] == "vector" and name in columns and name not in arrays:
                column = columns[name]
                if isinstance(column, np.ndarray) or not any(one is None for one in column):
                    arrays[name] = columns.pop(name)
        if not columns and arrays:
            return self._rows(None, arrays)
        return Columns(columns)

    def _asked(self, given: str | Iterable[str] | bool) -> list[str]:
        """The vector fields that are to be read."""
        if isinstance(given, bool):
            return self._vector_fields() if given else []
        return [given] if isinstance(given, str) else list(given)

    def _vector_fields(self) -> list[str]:
        fields = self._fields
        return [n for n, f in fields.items() if f["type"] == "vector" and not in_nested(n, fields)]

    def _vectors(self, given: Any) -> list[tuple[str, Any]]:
        """The vectors to look for, by field."""
        if isinstance(given, Mapping):
            return list(given.items())
        fields = self._vector_fields()
        if len(fields) != 1:
            wrong = (
                f"vector: the table has the vector fields {fields}: say which, {{field: vector}}"
            )
            raise ArgumentError(wrong, "vector")
        return [(fields[0], given)]
