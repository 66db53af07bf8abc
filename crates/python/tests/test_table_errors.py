"""Wrong arguments, folders and files: each gets a typed error that names it and the remedy."""

import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import vectors
from lanewise import ArgumentError, DtypeError, SchemaError, Table, vector

DIM = 8
X = vectors("f32", 20, DIM)
SCHEMA = {
    "title": "text",
    "n": "integer",
    "when": "date",
    "v": vector(DIM, "cosine"),
    "w": vector(2),
}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with Table.create(tmp_path / "t", SCHEMA) as table:
        table.put_many(None, ids=range(20), vectors={"v": X})
        yield table


@pytest.mark.parametrize(
    ("schema", "error", "said"),
    [
        (["title"], DtypeError, "schema must be a dict of fields by name, not list"),
        ({"a": "txt"}, ArgumentError, "field 'a' is 'txt': use one of 'keyword', 'text'"),
        ({"a": {"analyzer": "english"}}, ArgumentError, "field 'a' is"),
        ({"a": 3}, ArgumentError, "field 'a' is 3"),
        (
            {"a": {"type": "text", "analyser": "english"}},
            ArgumentError,
            "text takes no .*'analyser'",
        ),
        ({"a": {"type": "keyword", "dim": 3}}, ArgumentError, "keyword takes no .*'dim'"),
        ({"a": {"type": "text", "analyzer": "klingon"}}, SchemaError, "klingon.*standard"),
        ({"_id": "keyword"}, SchemaError, 'field "_id": a name has'),
        ({"a": "object", "a.b": "text"}, SchemaError, 'field "a" and field "a.b"'),
        ({3: "text"}, DtypeError, "the key 3, of type int: use str"),
        ({"v": vector(0)}, SchemaError, 'field "v": dim=0 is not between'),
        ({"v": vector(8, "euclid")}, SchemaError, 'metric is "euclid": give l2, ip'),
        ({"v": vector(8, dtype="f64")}, SchemaError, 'dtype is "f64"'),
        ({"v": vector(8, size=3)}, SchemaError, "unknown field `size`"),
        ({"v": vector(8, m=-1)}, SchemaError, "invalid value"),
        ({f"f{n}": "text" for n in range(1001)}, SchemaError, "1001 fields"),
    ],
)
def test_schemas(tmp_path: Path, schema: Any, error: type[ArgumentError], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        Table.create(tmp_path / "t", schema)
    assert raised.value.argument == "schema"
    # Nothing is left that would be in the way of the right one.
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("dynamic", ["yes", None, 2])
def test_dynamic(tmp_path: Path, dynamic: Any) -> None:
    with pytest.raises(ArgumentError, match="use True, False or 'strict'") as raised:
        Table.create(tmp_path / "t", {}, dynamic=dynamic)
    assert raised.value.argument == "dynamic"


def test_folders(table: Table, tmp_path: Path) -> None:
    table.close()
    with pytest.raises(lanewise.TableExistsError, match="already: open it with") as exists:
        Table.create(table.path, SCHEMA)
    assert isinstance(exists.value, FileExistsError)
    (tmp_path / "empty").mkdir()
    for path in ("nothing", "empty"):
        with pytest.raises(lanewise.TableMissingError, match="make one with") as missing:
            Table.open(tmp_path / path)
        assert isinstance(missing.value, FileNotFoundError)
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").write_text("x")
    for call in (lambda path: Table.create(path, SCHEMA), Table.open):
        with pytest.raises(NotADirectoryError):
            call(tmp_path / "file")
    with pytest.raises(FileNotFoundError) as parent:
        Table.create(tmp_path / "no" / "parent", SCHEMA)
    assert parent.value.filename == str(tmp_path / "no" / "parent")
    Table.create(tmp_path / "empty", SCHEMA).close()
    for wrong, error in ((3, DtypeError), ("", ArgumentError), ("a\0b", ArgumentError)):
        with pytest.raises(error, match="path"):
            Table.open(wrong)  # type: ignore[arg-type]


def test_relative_paths_stay_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Table.create("here", SCHEMA) as table:
        (tmp_path / "there").mkdir()
        monkeypatch.chdir(tmp_path / "there")
        table.put({"id": "a"})
        table.flush()
        assert table.path == tmp_path / "here"
    with Table.open(tmp_path / "here") as table:
        assert "a" in table


WRITES: dict[str, tuple[Callable[[Table], Any], type[Exception], str, str]] = {
    "no dict": (lambda t: t.put("x"), DtypeError, "document", "document must be a dict.*not str"),
    "list": (lambda t: t.put([{}]), DtypeError, "document", "not list"),
    "type": (lambda t: t.put({"n": "x"}), ArgumentError, "document", 'field "n": expected a whole'),
    "bytes": (lambda t: t.put({"b": b"x"}), DtypeError, "document", 'field "b" is of type bytes'),
    "key": (lambda t: t.put({"a": {1: 2}}), DtypeError, "document", 'field "a" has the key 1'),
    "NaN": (lambda t: t.put({"p": float("nan")}), ArgumentError, "document", "nan.*None"),
    "large": (lambda t: t.put({"p": 2**64}), ArgumentError, "document", "exceeds 64 bits"),
    "surrogate": (lambda t: t.put({"p": "\ud800"}), ArgumentError, "document", "surrogate"),
    "id": (lambda t: t.put({"id": 1.5}), DtypeError, "document", "its id is 1.5"),
    "id empty": (lambda t: t.put({"id": ""}), ArgumentError, "id", "1 to 512 bytes"),
    "id long": (lambda t: t.put({}, id="é" * 257), ArgumentError, "id", "1 to 512 bytes"),
    "id bool": (lambda t: t.put({}, id=True), DtypeError, "ids", "not bool"),
    "dim": (lambda t: t.put({"v": [1, 2]}), ArgumentError, "v", r"v has shape \(2,\).*dim=8"),
    "two vectors": (lambda t: t.put({"v": X[:2]}), ArgumentError, "v", "v has 2 vectors"),
    "vector NaN": (lambda t: t.put({"w": [1, np.nan]}), ArgumentError, "document", "NaN"),
    "zero": (lambda t: t.put({"v": [0] * 8}), ArgumentError, "document", 'field "v".*zero'),
    "vector type": (lambda t: t.put({"v": "x"}), DtypeError, "v", "v has dtype"),
    "date": (lambda t: t.put({"when": "soon"}), ArgumentError, "document", "ISO 8601"),
    "if_seq": (lambda t: t.put({}, if_seq=-1), ArgumentError, "if_seq", "if_seq=-1: use 0"),
    "no documents": (lambda t: t.put_many(3), DtypeError, "documents", "not int"),
    "text": (lambda t: t.put_many("abc"), DtypeError, "documents", "not str"),
    "nothing": (lambda t: t.put_many(None), ArgumentError, "documents", "give documents"),
    "columns": (
        lambda t: t.put_many({"n": [1, 2], "title": ["a"]}),
        ArgumentError,
        "documents",
        "columns differ in length.*'n': 2, 'title': 1",
    ),
    "ids few": (
        lambda t: t.put_many([{}, {}], ids=[1]),
        ArgumentError,
        "ids",
        "1 entries for 2 documents",
    ),
    "ids type": (lambda t: t.put_many([{}], ids=[1.5]), DtypeError, "ids", "ids must be str"),
    "vectors few": (
        lambda t: t.put_many([{}] * 3, vectors={"v": X[:2]}),
        ArgumentError,
        "vectors",
        "'?v'? ?.*2 vectors for 3|2 vectors for 3",
    ),
    "vectors field": (
        lambda t: t.put_many([{}], vectors={"title": X[:1]}),
        ArgumentError,
        "vectors",
        '"title" is no vector field.*"v", "w"',
    ),
    "vectors dim": (
        lambda t: t.put_many([{}] * 2, vectors={"w": X[:2]}),
        ArgumentError,
        "w",
        r"\(2, 8\).*dim=2",
    ),
    "delete type": (lambda t: t.delete(1.5), DtypeError, "ids", "ids must be str"),
    "delete several": (lambda t: t.delete([1, 2], if_seq=3), ArgumentError, "if_seq", "single id"),
    "get type": (lambda t: t.get(None), DtypeError, "ids", "ids must be str"),
    "settings": (
        lambda t: t.change_settings(durability="maybe"),
        ArgumentError,
        "settings",
        "unknown variant `maybe`.*`request`",
    ),
    "settings name": (lambda t: t.change_settings(sync=1), ArgumentError, "settings", "`sync`"),
    "settings range": (
        lambda t: t.change_settings(merge={"segments_per_tier": 1}),
        ArgumentError,
        "settings",
        "segments_per_tier=1: give 2 or more",
    ),
    "merge": (lambda t: t.merge(oops=1), ArgumentError, "settings", "unknown field `oops`"),
    "sort": (lambda t: t.search("x", sort="v"), ArgumentError, "sort", 'sort: .*"v" is a vector'),
    "sort order": (
        lambda t: t.search("x", sort={"n": "up"}),
        ArgumentError,
        "sort",
        'sort: sort by "n": "up": give "asc" or "desc"',
    ),
    "after": (lambda t: t.search("x", after=[1, 2, 3]), ArgumentError, "sort", "after has 3 val"),
    "aggs": (
        lambda t: t.search("x", aggs={"a": {"sums": {"field": "n"}}}),
        ArgumentError,
        "aggs",
        '"a"',
    ),
    "fusion": (
        lambda t: t.search("x", vector={"v": X[0]}, fusion="mean"),
        ArgumentError,
        "fusion",
        "unknown variant `mean`",
    ),
    "from": (lambda t: t.search("x", from_=-1), ArgumentError, "from_", "from_=-1: use 0 or more"),
    "candidates": (
        lambda t: t.search(vector={"v": X[0]}, candidates="x"),
        DtypeError,
        "candidates",
        "must be an integer, not str",
    ),
    "search dim": (lambda t: t.search(vector={"v": [1]}), ArgumentError, "v", "dim=8"),
    "search field": (lambda t: t.search(vector={"x": [1]}), ArgumentError, "vectors", '"v", "w"'),
    "search which": (lambda t: t.search(vector=X[0]), ArgumentError, "vector", "say which"),
    "search NaN": (
        lambda t: t.search(vector={"w": [1, np.nan]}),
        ArgumentError,
        "vector",
        'field "w".*NaN',
    ),
    "k": (lambda t: t.search("x", k=-1), ArgumentError, "k", "k=-1: use 0 or more"),
    "k type": (lambda t: t.search("x", k="3"), DtypeError, "k", "must be an integer"),
    "timeout": (lambda t: t.search("x", timeout=-1), ArgumentError, "timeout", "seconds"),
    "timeout NaN": (lambda t: t.search("x", timeout=float("nan")), ArgumentError, "timeout", "sec"),
    "timeout type": (lambda t: t.search("x", timeout="1"), DtypeError, "timeout", "number"),
    "ef": (
        lambda t: t.search(vector={"v": X[0]}, ef_search=0),
        ArgumentError,
        "ef_search",
        "ef_search=0",
    ),
    "force_merge": (lambda t: t.force_merge(0), ArgumentError, "segments", "at least 1"),
}


@pytest.mark.parametrize("case", WRITES)
def test_arguments(table: Table, case: str) -> None:
    call, error, argument, said = WRITES[case]
    with pytest.raises((error, lanewise.WriteError)) as raised:
        call(table)
    problem: Any = raised.value
    if isinstance(problem, lanewise.WriteError):
        problem = problem.written.errors[0][1]
    assert isinstance(problem, error), problem
    if argument:
        assert isinstance(problem, lanewise.Error)
        assert problem.argument == argument, str(problem)  # type: ignore[attr-defined]
        assert re.search(said, str(problem)), str(problem)
    assert len(table) == 20
    assert table.search(vector={"v": X[3]}, k=1).ids == ["3"]


def test_a_timeout_gives_up(table: Table) -> None:
    with pytest.raises(lanewise.DeadlineError, match="allow more time") as raised:
        table.search(vector={"v": X[0]}, timeout=0)
    assert isinstance(raised.value, TimeoutError)
    assert table.search(vector={"v": X[0]}, timeout=60, k=1).ids == ["0"]


def test_damage_is_named_and_nothing_else(table: Table, tmp_path: Path) -> None:
    """A byte of each file in turn; the table is as it was, or says what is damaged."""
    table.put({"id": "x", "title": "red shoes", "v": X[0]})
    table.flush()
    table.delete([3, 4])
    table.put({"id": "log", "title": "in the log"})
    table.close()
    files = [
        path for path in sorted(table.path.rglob("*")) if path.is_file() and path.name != "lock"
    ]  # type: ignore[attr-defined]
    assert len(files) > 5
    found = []
    for number, path in enumerate(files):
        shutil.copytree(table.path, tmp_path / f"damaged-{number}")
        target = tmp_path / f"damaged-{number}" / path.relative_to(table.path)
        content = bytearray(target.read_bytes())
        if not content:
            continue
        content[len(content) // 2] ^= 0x10
        target.write_bytes(content)
        try:
            with Table.open(tmp_path / f"damaged-{number}") as opened:
                assert opened.search("red", k=5).ids == ["x"]
                assert opened.search(vector={"v": X[5]}, k=1).ids == ["5"]
                assert opened["log"]["title"] == "in the log"
                assert 3 not in opened
        except lanewise.FormatError as error:
            found.append(path.name)
            said = str(error)
            assert f"damaged-{number}" in said
            assert "snapshot" in said or "newer" in said, said
    assert "manifest" in found
    assert len(found) >= 4, found


def test_errors_can_be_pickled() -> None:
    for error in (
        lanewise.ConflictError("it is there", "a", 3),
        lanewise.WriteError("some", None),
        lanewise.TableExistsError("there"),
        lanewise.TableMissingError("not there"),
        lanewise.TableLockedError("locked"),
        lanewise.TableClosedError("closed"),
        lanewise.DurabilityError("disk"),
        lanewise.DeadlineError("late"),
        lanewise.BusyError("busy"),
        lanewise.SchemaError("schema", "schema"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
    assert pickle.loads(pickle.dumps(lanewise.ConflictError("x", "a", 3))).found == 3


def test_ids_are_several(table: Table) -> None:
    for ids in ("12", b"12", 12):
        with pytest.raises(DtypeError, match="ids must be"):
            table.get_many(ids)  # type: ignore[arg-type]
        with pytest.raises(DtypeError, match="ids must be"):
            table.put_many([{}, {}], ids=ids)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="lone surrogate"):
        table.get("\ud800")
    assert table.search(filter={"ids": [3, "4", np.int64(5)]}).ids == ["3", "4", "5"]
    with pytest.raises(DtypeError, match="ids must be a list"):
        table.search(filter={"ids": "3"})


@pytest.mark.parametrize(
    ("condition", "error", "said"),
    [
        ({"if_seq": "1"}, DtypeError, "if_seq must be an integer, not str"),
        ({"if_seq": -1}, ArgumentError, "if_seq=-1: use 0 or more"),
        ({"if_seq": 2**64}, ArgumentError, "below 2"),
        ({"if_seq": 1, "if_absent": True}, ArgumentError, "if_absent for one that is not"),
    ],
)
def test_conditions(table: Table, condition: Any, error: type[ArgumentError], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        table.put({}, id="1", **condition)
    assert raised.value.argument == "if_seq"
    if "if_absent" not in condition:
        with pytest.raises(error, match=said):
            table.delete("1", **condition)


def test_a_document_is_no_columns(table: Table) -> None:
    for write in (table.put_many, table.load):
        for document in ({"title": "ab"}, {"title": "a", "n": 1}, {"n": 1}, {"n": iter("ab")}):
            with pytest.raises(DtypeError, match=r"column .* put\(\) takes a single document"):
                write(document)
    assert len(table) == 20


def test_no_documents_have_no_vectors(table: Table) -> None:
    none = {"v": np.empty((0, DIM), np.float32)}
    assert not table.put_many([], vectors=none).ids
    assert table.load([], vectors=none) == table.load(None, vectors=none) == 0
    with pytest.raises(ArgumentError, match="20 vectors for 0 documents"):
        table.load([], vectors={"v": X})
    with pytest.raises(DtypeError, match="vectors must be a dict of arrays by field, not list"):
        table.load([], vectors=[X])  # type: ignore[arg-type]


def test_bytes_and_dicts_are_no_values(table: Table) -> None:
    for value in (b"a", {"lt": 3}):
        for asked in ({"n": {"eq": value}}, {"n": {"ne": value}}, {"new": {"eq": value}}):
            with pytest.raises(ArgumentError):
                table.search(filter=asked)
