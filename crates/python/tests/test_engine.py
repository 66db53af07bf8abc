"""Many tables by name: handles, eviction, damage, locks, memory."""

import copy
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lanewise
import pytest
from conftest import vectors
from lanewise import ArgumentError, DtypeError, Engine, MemoryLimitError, Table, TableInfo

Python = Callable[..., str]

DIM = 8
X = vectors("f32", 200, DIM)
SCHEMA = {"n": "integer", "v": lanewise.vector(DIM)}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "e") as engine:
        yield engine


def states(engine: Engine) -> dict[str, str]:
    return {table.name: table.state for table in engine.tables()}


def test_tables_come_and_go_by_name(engine: Engine, tmp_path: Path) -> None:
    assert engine.names() == list(engine) == []
    made = {name: engine.create(name, SCHEMA) for name in ("b", "a", "größe")}
    for number, table in enumerate(made.values()):
        table.put({"id": number, "n": number, "v": X[number]})
    assert engine.names() == list(engine) == ["a", "b", "größe"]
    assert len(engine) == 3
    assert "a" in engine
    assert "c" not in engine
    assert engine["a"].get(1) == {"id": "1", "n": 1}
    assert engine["a"].schema["v"]["dim"] == DIM
    assert made["b"].path == tmp_path / "e" / "tables" / "b"
    assert engine.tables()[0] == TableInfo("a", "open", 1, None)
    assert repr(engine) == f"<lanewise.Engine {str(tmp_path / 'e')!r}, 3 tables>"
    with pytest.raises(lanewise.TableExistsError, match=r'"a" already: drop it'):
        engine.create("a", SCHEMA)
    with pytest.raises(lanewise.TableMissingError, match=r'no table "c"'):
        engine.table("c")
    engine.drop("b")
    with pytest.raises(lanewise.TableMissingError):
        engine.drop("b")
    assert engine.names() == ["a", "größe"]
    engine.close()
    with Engine(tmp_path / "e") as again:
        # Nothing is opened before it is asked for.
        assert again.tables() == [
            TableInfo("a", "closed", None, None),
            TableInfo("größe", "closed", None, None),
        ]
        assert again["größe"].search(vector=X[2], k=1).ids == ["2"]


def test_tables_of_evicted_tables_go_on(tmp_path: Path) -> None:
    with Engine(tmp_path / "e", open_tables=1) as engine:
        tables = [engine.create(f"t{n}", SCHEMA) for n in range(5)]
        for turn in range(3):
            for n, table in enumerate(tables):
                table.put({"id": turn, "n": 10 * turn + n, "v": X[n]})
                assert list(states(engine).values()).count("open") <= 1
                assert table.search(filter={"n": 10 * turn + n}).ids == [str(turn)]
        assert [len(table) for table in tables] == [3] * 5
        assert not tables[0].closed
        # A closed table is of no use; another of the same name is.
        tables[0].close()
        assert tables[0].closed
        with pytest.raises(lanewise.TableClosedError, match=r"t0 is closed"):
            len(tables[0])
        assert len(engine["t0"]) == 3


def test_what_is_dropped_is_not_written_to(engine: Engine) -> None:
    table = engine.create("t", SCHEMA)
    table.put({"id": 1})
    engine.drop("t")
    for call in (lambda: table.put({"id": 2}), lambda: len(table), lambda: table.flush()):
        with pytest.raises(lanewise.TableMissingError, match=r'no table "t"'):
            call()
    assert "dropped" in repr(table)
    engine.create("t", SCHEMA)
    assert table.put({"id": 2}).outcome == "created"
    assert engine["t"].get(1) is None
    engine.drop("t")
    engine.create("t", {"other": "text"})
    with pytest.raises(lanewise.TableMissingError, match=r"was dropped, and one with other fields"):
        table.get(2)
    with pytest.raises(lanewise.TableMissingError):
        table.merge()


def test_a_damaged_table_is_put_aside_and_the_others_serve(tmp_path: Path) -> None:
    with Engine(tmp_path / "e") as engine:
        for name in ("a", "b", "c"):
            engine.create(name, SCHEMA).put({"id": name, "n": 1})
    manifest = tmp_path / "e" / "tables" / "b" / "manifest"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-9] + bytes(9))
    with Engine(tmp_path / "e") as engine:
        for _ in range(2):
            with pytest.raises(
                lanewise.TableDamagedError, match=r"put aside.*lanewise repair"
            ) as raised:
                engine.table("b")
            assert isinstance(raised.value, lanewise.FormatError)
            assert raised.value.name == "b"
            assert raised.value.why in str(raised.value)
        listed = {table.name: table for table in engine.tables()}
        assert listed["b"] == TableInfo("b", "damaged", None, raised.value.why)
        assert [engine[name].get(name) is not None for name in ("a", "c")] == [True, True]
        manifest.write_bytes(whole)
        with pytest.raises(lanewise.TableDamagedError):
            engine.table("b")
        assert engine.retry("b").get("b") == {"id": "b", "n": 1}
        assert engine["b"].get("b") is not None
        manifest.write_bytes(b"")
        engine.close()
    with Engine(tmp_path / "e") as engine:
        with pytest.raises(lanewise.TableDamagedError):
            engine.table("b")
        engine.drop("b")
        assert engine.names() == ["a", "c"]


def test_opened_twice_is_an_error(engine: Engine, python: Python) -> None:
    with pytest.raises(lanewise.TableLockedError, match=r"in use by another process"):
        Engine(engine.path)
    engine.create("t", SCHEMA)
    with pytest.raises(lanewise.TableLockedError):
        Table.open(engine["t"].path)
    code = """
import sys, lanewise
try:
    lanewise.Engine(sys.argv[1])
except lanewise.TableLockedError:
    print("locked")
"""
    assert python(code, engine.path) == "locked\n"
    engine.close()
    code = """
import sys, lanewise
engine = lanewise.Engine(sys.argv[1])
engine["t"].put({"id": 1})
print(len(engine["t"]))
"""
    assert python(code, engine.path) == "1\n"
    with Engine(engine.path) as again:
        assert len(again["t"]) == 1


def test_a_closed_engine_says_so(engine: Engine) -> None:
    table = engine.create("t", SCHEMA)
    table.put({"id": 1})
    assert not engine.closed
    engine.close()
    engine.close()
    assert engine.closed
    assert table.closed
    assert repr(engine).endswith("closed>")
    for call in (
        engine.names,
        engine.tables,
        engine.memory,
        lambda: engine["t"],
        lambda: engine.create("u", SCHEMA),
        lambda: engine.drop("t"),
    ):
        with pytest.raises(lanewise.TableClosedError, match=r"engine .* is closed: open it again"):
            call()
    for call in (lambda: table.put({}), lambda: len(table), table.memory):
        with pytest.raises(lanewise.TableClosedError, match=r"table .* is closed"):
            call()
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        copy.copy(engine)


@pytest.mark.parametrize(
    ("limit", "error"),
    [("8", ArgumentError), ("101%", ArgumentError), (0, ArgumentError), (True, DtypeError)],
)
def test_wrong_arguments_are_named(tmp_path: Path, limit: Any, error: type[ArgumentError]) -> None:
    for call in (
        lambda: Engine(tmp_path / "e", memory_limit=limit),
        lambda: Table.create(tmp_path / "t", SCHEMA, memory_limit=limit),
    ):
        with pytest.raises(error, match="memory_limit") as raised:
            call()
        assert raised.value.argument == "memory_limit"
    with Engine(tmp_path / "e") as engine:
        with pytest.raises(ArgumentError, match=r'table name "A": write it in lower case'):
            engine.create("A", SCHEMA)
        with pytest.raises(DtypeError, match=r"name must be str, not int"):
            engine.table(3)
        with pytest.raises(lanewise.SchemaError):
            engine.create("a", {"v": lanewise.vector(0)})
        assert len(engine) == 0


def test_memory_is_limited_and_refused_with_the_numbers(tmp_path: Path) -> None:
    with Engine(tmp_path / "e", memory_limit="50%") as engine:
        half = engine.memory()["limit"]
        table = engine.create("t", SCHEMA)
        assert table.memory()["limit"] == half
        assert set(table.memory()["in_use"]) == {"open", "write", "seal", "merge", "search"}
        table.put_many(None, ids=range(200), vectors={"v": X})
    with Table.create(tmp_path / "t", SCHEMA, memory_limit="100%") as table:
        assert table.memory()["limit"] > 1.9 * half
        table.put_many(None, ids=range(200), vectors={"v": X})
    with Table.create(tmp_path / "none", SCHEMA, memory_limit="none") as table:
        assert table.memory()["limit"] is None

    def of_an_engine() -> None:
        with Engine(tmp_path / "e", memory_limit=100) as engine:
            assert engine.memory()["limit"] == 100
            engine["t"].flush()

    def of_a_table() -> None:
        with Table.open(tmp_path / "t", memory_limit="100b") as table:
            table.flush()

    for call in (of_an_engine, of_a_table):
        with pytest.raises(MemoryLimitError, match=r"bytes.*memory_limit=100") as raised:
            call()
        error = raised.value
        assert isinstance(error, MemoryError)
        assert error.asked > 100
        assert error.limit == 100
        assert error.in_use is not None
        assert error.purpose in error.in_use
        assert error.waiting is None
    # Nothing is lost by it.
    with Table.open(tmp_path / "t") as table:
        table.flush()
        assert len(table) == 200


def test_a_forked_child_leaves_the_engine_alone(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import os, sys, lanewise
path = sys.argv[1]
engine = lanewise.Engine(path)
table = engine.create("t", {"n": "integer"})
table.put({"id": 1})
child = os.fork()
if child == 0:
    said = []
    for call in (lambda: table.put({}), lambda: len(table), engine.names, lambda: engine["t"]):
        try:
            call()
        except lanewise.TableClosedError as error:
            said.append("forked" in str(error))
    try:
        lanewise.Engine(path)
    except lanewise.TableLockedError:
        said.append("locked")
    with lanewise.Engine(path + "-child") as own:
        said.append(own.create("t", {"n": "integer"}).put({"id": 1}).outcome)
    engine.close()
    fine = said == [True, True, True, True, "locked", "created"]
    print(said if not fine else "", end="", flush=True)
    sys.exit(0 if fine else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
table.put({"id": 2})
print(len(engine["t"]))
""",
        tmp_path / "e",
    )
    # It ends without closing: what is open is closed at exit.
    assert said == "0\n2\n"


def test_threads_share_an_engine_until_it_is_closed(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    written = [0] * 6
    with Engine(tmp_path / "e", open_tables=2) as engine:
        for n in range(3):
            engine.create(f"t{n}", SCHEMA)

        def work(number: int) -> None:
            try:
                while True:
                    table = engine[f"t{number % 3}"]
                    key = f"{number}-{written[number]}"
                    table.put({"id": key, "v": X[number]})
                    written[number] += 1
                    assert key in table
                    assert len(table.search(vector=X[number], k=1)) == 1
                    if number == 0:
                        table.merge()
            except lanewise.TableClosedError:
                pass
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        while not failures and min(written) < 10:
            pass
        engine.close()
        for thread in threads:
            thread.join()
    assert not failures, failures
    with Engine(tmp_path / "e") as engine:
        for number, count in enumerate(written):
            table = engine[f"t{number % 3}"]
            assert all(f"{number}-{n}" in table for n in range(count))


def test_engines_leave_no_threads_or_files(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import os, sys, lanewise
def opened():
    with lanewise.Engine(sys.argv[1]) as engine:
        if "t" not in engine:
            engine.create("t", {"n": "integer"})
        engine["t"].put({"id": 1, "n": 1})
def count():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
opened()
before = count()
for _ in range(50):
    opened()
print(count() == before)
""",
        tmp_path / "e",
    )
    assert said == "True\n"
    assert os.listdir(tmp_path / "e" / "tables") == ["t"]


def test_a_call_on_a_table_that_is_dropped_meanwhile_says_so(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with Engine(tmp_path / "e") as engine:
        for _ in range(20):
            table = engine.create("t", SCHEMA)

            def work(table: Table = table) -> None:
                try:
                    for n in range(1000):
                        table.put({"id": n, "v": X[0]})
                        table.flush()
                except lanewise.TableMissingError:
                    return
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            while not failures and len(table) < 3:
                pass
            engine.drop("t")
            for thread in threads:
                thread.join()
    assert not failures, failures


def test_a_tables_folder_is_no_engines(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", SCHEMA).close()
    with pytest.raises(ArgumentError, match=r"is a table.*Table\.open\(\)") as raised:
        Engine(tmp_path / "t")
    assert raised.value.argument == "folder"
    with Engine(tmp_path / "e") as engine:
        engine.create("gone", SCHEMA)
    shutil.rmtree(tmp_path / "e" / "tables" / "gone")
    with Engine(tmp_path / "e") as engine:
        engine.create("gone", SCHEMA)
        engine.create("b", SCHEMA).close()
    with Engine(tmp_path / "e") as engine:
        shutil.rmtree(tmp_path / "e" / "tables" / "gone")
        with pytest.raises(lanewise.TableMissingError):
            engine["gone"]
        assert engine.names() == ["b"]
        assert len(engine.create("gone", SCHEMA)) == 0
