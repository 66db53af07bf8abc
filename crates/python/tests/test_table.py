"""Tables: what is written is found, by whichever way it came, also once it is opened again."""

import datetime
import math
import pickle
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import nearest, vectors
from lanewise import Document, Table

DIM = 8
X = vectors("f32", 60, DIM)
SCHEMA = {
    "title": "text",
    "color": "keyword",
    "price": "float",
    "stock": "integer",
    "added": "date",
    "sold": "boolean",
    "embedding": lanewise.vector(DIM, metric="cosine"),
}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with Table.create(tmp_path / "products", SCHEMA) as table:
        yield table


def reopened(table: Table) -> Table:
    table.close()
    return Table.open(table.path)


def product(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "title": f"{('red', 'blue', 'green')[number % 3]} shoes number {number}",
        "color": ("red", "blue", "green")[number % 3],
        "price": number * 1.5,
        "embedding": X[number],
    }


def without(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "embedding"}


def test_a_document_comes_back_as_it_was(table: Table) -> None:
    document = {
        "id": "a",
        "title": "größe £",
        "price": 0.1 + 0.2,
        "stock": -(2**63),
        "sold": True,
        "added": datetime.datetime(2023, 11, 15, 12, 30, tzinfo=datetime.UTC),
        "unnamed": {"inner": [1, None, "x", {"y": 2**64 - 1}], "tiny": 5e-324, "huge": 1.7e308},
        "none": None,
    }
    written = table.put({**document, "embedding": X[0]})
    assert written == ("a", 1, 1, "created")
    expected = {**document, "added": "2023-11-15T12:30:00+00:00"}
    for _ in range(2):
        found = table.get("a")
        assert found == expected
        assert isinstance(found, Document)
        assert (found.id, found.seq, found.version) == ("a", 1, 1)
        assert table["a"] == expected
        table = reopened(table)
    table.close()


def test_ids_versions_and_outcomes(table: Table) -> None:
    assert table.put({"title": "x"}, id=7).id == "7"
    assert table.put({"title": "y"}, id="7")[2:] == (2, "updated")
    assert 7 in table
    assert np.int64(7) in table
    assert "8" not in table
    assert table.get(8) is None
    new = table.put({"title": "z"}).id
    assert new not in ("", "7")
    assert [one and one["title"] for one in table.get_many([new, 8, 7])] == ["z", None, "y"]
    assert len(table) == 2
    assert table.delete(["7", 8]) == 1
    assert table.delete(new) == 1
    assert len(table) == 0
    with pytest.raises(KeyError, match="no document has the id '7'"):
        table["7"]


def test_what_is_got_can_be_put(table: Table) -> None:
    table.put({"id": "a", "title": "x", "more": [1.5]})
    found = table.get("a")
    assert found is not None
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), again, again.seq) == (Document, found, found.seq)
    assert table.put(found)[2:] == (2, "updated")
    assert table.get("a") == found


def test_a_field_named_id_is_the_id_and_kept(tmp_path: Path) -> None:
    with Table.create(tmp_path / "t", {"id": "integer"}) as table:
        table.put({"id": 3})
        table.put({"id": 4}, id="x")
        assert table.get(3) == {"id": 3}
        found = table.get("x")
        assert found == {"id": 4}
        assert found is not None
        assert found.id == "x"
        assert table.search(filter={"id": {"gt": 3}}).ids == ["x"]


@pytest.mark.parametrize("way", ["dicts", "arrays", "columns", "lists"])
def test_every_way_in_writes_the_same(table: Table, way: str) -> None:
    documents = [product(number) for number in range(60)]
    if way == "dicts":
        done = table.put_many(documents)
    elif way == "arrays":
        done = table.put_many([without(one) for one in documents], vectors={"embedding": X})
    elif way == "columns":
        columns = {name: np.array([one[name] for one in documents]) for name in documents[0]}
        done = table.put_many(columns)
    else:
        columns = {name: [one[name] for one in documents] for name in documents[0]}
        done = table.put_many({**columns, "embedding": X.tolist()})
    assert done.ids == [str(number) for number in range(60)]
    assert done.outcomes == ["created"] * 60
    assert done.seqs.tolist() == list(range(1, 61))
    assert repr(done) == "<lanewise.WrittenMany: 60 created>"
    expected, distances = nearest(X, X[:5], "cosine", 60)
    for again in (False, True):
        if again:
            table.flush()
            table = reopened(table)
        for number, document in enumerate(documents):
            assert table.get(number) == without(document)
        for query in range(5):
            found = table.search(vector=X[query], k=60)
            np.testing.assert_allclose(found.distances, distances[query], atol=1e-6)
            assert sorted(found.ids) == sorted(map(str, expected[query]))
    table.close()


def test_missing_values_of_columns_are_left_out(table: Table) -> None:
    table.put_many({"id": [1, 2], "title": ["a", None], "embedding": [None, X[1].tolist()]})
    assert table.get(1) == {"id": "1", "title": "a"}
    assert table.get(2) == {"id": "2"}
    assert table.search(vector=X[0]).ids == ["2"]


def test_pandas(table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": [1, 2, 3],
            "title": ["a", None, "c"],
            "price": [1.5, math.nan, 3.0],
            "added": pandas.to_datetime(["2023-11-15", None, "2024-01-01"]),
            "embedding": list(X[:3]),
        }
    )
    table.put_many(frame)
    assert table.get(1) == {"id": "1", "title": "a", "price": 1.5, "added": "2023-11-15T00:00:00"}
    assert table.get(2) == {"id": "2"}
    assert table.search(filter={"added": {"gt": "2023-12-01"}}).ids == ["3"]
    assert table.search(vector=X[2], k=1).ids == ["3"]


@pytest.mark.parametrize("kind", ["fixed", "variable", "batch"])
def test_pyarrow(table: Table, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    size = -1 if kind == "variable" else DIM
    columns = {
        "id": pa.array(["x", "y", "z"]),
        "price": pa.array([1.5, None, 2.5]),
        "embedding": pa.array(X[:3].tolist(), pa.list_(pa.float32(), size)),
    }
    made = pa.RecordBatch if kind == "batch" else pa.Table
    # A part of a longer one: its columns do not begin where their memory does.
    table.put_many(made.from_pydict(columns).slice(1))
    assert table.get("y") == {"id": "y"}
    assert table.get("z") == {"id": "z", "price": 2.5}
    found = table.search(vector=X[2], k=1)
    assert found.ids == ["z"]
    assert found.distances is not None
    assert abs(found.distances[0]) < 1e-6


def test_numpys_values_are_taken(table: Table) -> None:
    table.put(
        {
            "id": np.str_("a"),
            "price": np.float32(0.5),
            "stock": np.uint8(3),
            "sold": np.bool_(True),
            "added": np.datetime64("2023-11-15T01:02:03.123456789"),
            "many": np.arange(3),
            "tuple": (1, 2),
        }
    )
    assert table.get("a") == {
        "id": "a",
        "price": 0.5,
        "stock": 3,
        "sold": True,
        "added": "2023-11-15T01:02:03.123000",
        "many": [0, 1, 2],
        "tuple": [1, 2],
    }


def test_every_type_of_vector(tmp_path: Path) -> None:
    fields = {
        "floats": lanewise.vector(4, "l2", dtype="f16", kind="flat"),
        "bytes": lanewise.vector(4, dtype="u8", kind="flat"),
        "bits": lanewise.vector(12, dtype="bits", kind="flat"),
    }
    bits = vectors("bits", 3, 12)
    with Table.create(tmp_path / "t", fields) as table:
        table.put_many(
            None,
            ids=range(3),
            vectors={"floats": np.eye(3, 4), "bytes": np.eye(3, 4, dtype=np.uint8), "bits": bits},
        )
        table.put(
            {"id": 3, "bits": np.packbits(bits[0], bitorder="little"), "floats": [0, 0, 0, 9]}
        )
        assert len(table) == 4
        assert table.search(vector={"floats": np.eye(4)[1]}, k=1).ids == ["1"]
        assert table.search(vector={"bytes": [0, 0, 1, 0]}).ids[0] == "2"
        assert set(table.search(vector={"bits": bits[0]}, k=2).ids) == {"0", "3"}
        assert len(table.search(vector={"bytes": [0, 0, 1, 0]})) == 3


def test_conditions(table: Table) -> None:
    first = table.put({"id": "a", "stock": 1}, if_absent=True)
    with pytest.raises(lanewise.ConflictError, match="there already") as raised:
        table.put({"id": "a", "stock": 2}, if_absent=True)
    assert (raised.value.id, raised.value.found) == ("a", first.seq)
    second = table.put({"id": "a", "stock": 2}, if_seq=first.seq)
    for call in (
        lambda: table.put({"id": "a", "stock": 3}, if_seq=first.seq),
        lambda: table.delete("a", if_seq=first.seq),
    ):
        with pytest.raises(lanewise.ConflictError, match=f"is {second.seq}, not {first.seq}.*get"):
            call()
    with pytest.raises(lanewise.ConflictError, match="not there") as raised:
        table.put({"id": "b"}, if_seq=1)
    assert raised.value.found is None
    assert table["a"]["stock"] == 2
    assert table.delete("a", if_seq=second.seq) == 1


def test_refused_documents_do_not_keep_others_out(table: Table) -> None:
    documents: list[Any] = [product(number) for number in range(1200)[:60]] * 20
    documents = [{**one, "id": str(place)} for place, one in enumerate(documents)]
    wrong = {
        3: {"price": "dear"},
        700: {"embedding": [1, 2]},
        701: {"color": {1}},
        1100: {"id": 1.5},
    }
    for place, fields in wrong.items():
        documents[place] = {**documents[place], **fields}
    documents[900] = "no dict"
    with pytest.raises(lanewise.WriteError, match="5 of 1200 documents were refused") as raised:
        table.put_many(documents)
    done = raised.value.written
    assert [place for place, _ in done.errors] == [3, 700, 701, 900, 1100]
    for (place, error), said in zip(
        done.errors,
        [
            r'documents\[3\]: field "price": expected a number, found the string "dear"',
            r"embedding has shape \(2,\)",
            r'documents\[701\]: field "color" is of type set',
            r"documents\[900\] must be a dict",
            r"documents\[1100\]: its id is 1.5: use str",
        ],
        strict=True,
    ):
        assert isinstance(error, lanewise.ArgumentError), place
        assert re.search(said, str(error)), error
        assert (done.ids[place], done.seqs[place], done.outcomes[place]) == (None, -1, "failed")
    assert len(table) == 1195
    assert done.outcomes.count("created") == 1195
    assert table.get(702) == without(documents[702])
    again = table.put_many(documents[:5], raise_on_error=False)
    assert again.outcomes == ["updated"] * 3 + ["failed", "updated"]


def test_segments_are_sealed_and_merged(table: Table) -> None:
    for start in range(0, 60, 20):
        table.put_many([product(number) for number in range(start, start + 20)])
        table.flush()
    table.delete([0, 1, 2])
    assert [(one.sealed, one.live, one.deleted) for one in table.segments()] == [
        (True, 17, 3),
        (True, 20, 0),
        (True, 20, 0),
        (False, 0, 0),
    ]
    assert table.merge() is None
    new, old = table.merge(deletes_allowed=0.01) or (0, [])
    assert sorted(old) == [1, 2, 3]
    assert new not in old
    table.force_merge(1)
    assert table.stats() == {
        "documents": 57,
        "deleted": 0,
        "segments": 1,
        "path": str(table.path),
        "trouble": None,
    }
    with reopened(table) as table:
        assert sorted(table.search(vector=X[0], k=100).ids) == sorted(map(str, range(3, 60)))


def test_schema_comes_back_and_makes_the_same(table: Table, tmp_path: Path) -> None:
    schema = table.schema
    assert schema["title"] == {"type": "text", "analyzer": "standard"}
    assert schema["embedding"]["metric"] == "cosine"
    assert table.dynamic is True
    for dynamic in (True, False, "strict"):
        with Table.create(tmp_path / f"copy-{dynamic}", schema, dynamic=dynamic) as copy:
            assert (copy.schema, copy.dynamic) == (schema, dynamic)
    with Table.open(tmp_path / "copy-strict") as strict:
        with pytest.raises(lanewise.ArgumentError, match=r'field "size".*strict') as raised:
            strict.put({"size": 3})
        assert raised.value.argument == "document"


def test_hits_print_and_slice(table: Table) -> None:
    table.put_many([product(number) for number in range(12)])
    found = table.search(vector=X[3], k=12)
    assert len(found) == 12
    first = found[0]
    assert (first.id, first.document) == ("3", without(product(3)))
    assert found.distances is not None
    assert (first.score, first.distance) == (found.scores[0], found.distances[0])
    assert [hit.id for hit in found[:3]] == found.ids[:3]
    assert found[-1].id == found.ids[-1]
    text = repr(found)
    assert text.startswith("<lanewise.Hits: 12 of 12 documents\n  3  distance ")
    assert "'title': 'red shoes number 3'" in text
    assert text.endswith("…>")
    bare = table.search(vector=X[3], k=2, documents=False)
    assert (bare.documents, bare[0].document) == (None, None)
    assert "12 documents, added: date, color: keyword, embedding: vector" in repr(table)


def test_settings_are_kept(table: Table) -> None:
    usual = table.settings()
    assert usual["durability"] == "request"
    table.change_settings(durability="async", sync_interval_ms=200, merge={"segments_per_tier": 3})
    expected = {**usual, "durability": "async", "sync_interval_ms": 200}
    expected["merge"] = {**usual["merge"], "segments_per_tier": 3}
    assert table.settings() == expected
    table.put({"id": "a"})
    table.sync()
    with reopened(table) as table:
        assert table.settings() == expected
        assert "a" in table


def test_tables_are_looked_after(tmp_path: Path) -> None:
    with Table.create(tmp_path / "t", {"text": "text", "v": lanewise.vector(2)}) as table:
        table.change_settings(flush_after_ms=100, merge={"segments_per_tier": 2})
        for number in range(12):
            table.put({"id": number, "text": f"word {number}", "v": [number, 1]})
            deadline = time.monotonic() + 30
            while table.stats()["segments"] == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
        assert table.stats()["segments"] > 0
        assert table.search("word", k=20).total == 12


def test_progress_is_drawn(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    table.put_many([without(product(1))] * 3, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_loading_is_all_or_nothing(table: Table) -> None:
    table.put_many([product(number) for number in range(3)])
    documents = [without(product(number)) for number in range(60)]
    documents[7]["price"] = "dear"
    with pytest.raises(lanewise.ArgumentError, match=r'documents\[7\]: field "price"'):
        table.load(documents, vectors={"embedding": X})
    assert len(table) == 3
    documents[7]["price"] = 10.5
    # The last of those with one id is it.
    documents.append({"id": "7", "title": "again"})
    vectors = np.concatenate([X, X[:1]])
    assert table.load(documents, vectors={"embedding": vectors}) == 60
    for _ in range(2):
        assert len(table) == 60
        assert table.get(7) == {"id": "7", "title": "again"}
        assert table.get(8) == documents[8]
        assert table["0"].version == 2
        assert table.search(vector=X[20], k=1).ids == ["20"]
        assert table.search("again").ids == ["7"]
        table = reopened(table)
    assert table.load({"title": ["x", "y"]}) == 2
    assert len(table) == 62
    with pytest.raises(lanewise.ArgumentError, match="1 of 2 documents have an id"):
        table.load([{"id": 1}, {}])
    with pytest.raises(lanewise.ArgumentError, match=r"give vectors=.*or use put_many"):
        table.load([{"embedding": X[0]}])
    assert len(table) == 62
    table.close()
