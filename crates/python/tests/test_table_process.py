"""What tables do to their process, and processes to tables: signals, threads, forks, kills."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lanewise
import numpy as np
import pytest
from conftest import vectors
from lanewise import Table

Python = Callable[..., str]

DIM = 16
X = vectors("f32", 2000, DIM)
SCHEMA = {"n": "integer", "v": lanewise.vector(DIM)}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with Table.create(tmp_path / "t", SCHEMA) as table:
        yield table


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_threads_start_with_the_first_table_and_end_at_exit(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import atexit, os, sys
# Which starts threads of its own.
import numpy
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
# Runs after what lanewise registers: the last in is the first out.
atexit.register(lambda: print("at exit", threads() - before))
import lanewise
print(threads() - before)
table = lanewise.Table.create(sys.argv[1], {"n": "integer"})
one = threads()
other = lanewise.Table.create(sys.argv[1] + "2", {"n": "integer"})
print(one > before, threads() == one)
other.close()
table.put({"n": 1})
print(table.search(filter={"n": 1}).total)
""",
        tmp_path / "t",
    )
    assert said.splitlines() == ["0", "True True", "1", "at exit 0"]


def test_opened_twice_is_an_error(table: Table, python: Python) -> None:
    with pytest.raises(lanewise.TableLockedError, match=r"open already.*close it") as raised:
        Table.open(table.path)
    assert isinstance(raised.value, OSError)
    code = """
import sys, lanewise
try:
    lanewise.Table.open(sys.argv[1])
except lanewise.TableLockedError as error:
    print("locked")
"""
    assert python(code, table.path) == "locked\n"
    table.put({"id": 1, "n": 1})
    table.close()
    # Now the other process may have it, and gives it back when it ends without closing.
    code = """
import os, sys, lanewise
table = lanewise.Table.open(sys.argv[1])
table.put({"id": 2, "n": 2})
print(len(table), flush=True)
os._exit(0)
"""
    assert python(code, table.path) == "2\n"
    with Table.open(table.path) as again:
        assert [again[1]["n"], again[2]["n"]] == [1, 2]


def test_a_closed_table_says_so(table: Table) -> None:
    table.put({"id": 1})
    assert not table.closed
    table.close()
    table.close()
    assert table.closed
    assert repr(table).endswith("closed>")
    for call in (
        lambda: table.put({}),
        lambda: table.get(1),
        lambda: table.search(filter={}),
        lambda: len(table),
        lambda: table.flush(),
        lambda: table.delete("1"),
    ):
        with pytest.raises(lanewise.TableClosedError, match=r"is closed: open it again") as raised:
            call()
        assert isinstance(raised.value, ValueError)


def test_a_forked_child_leaves_the_table_alone(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import os, sys, lanewise
path = sys.argv[1]
table = lanewise.Table.create(path, {"n": "integer", "v": lanewise.vector(2)})
table.put({"id": 1, "v": [1, 2]})
child = os.fork()
if child == 0:
    said = []
    for call in (lambda: table.put({}), lambda: table.search(vector=[1, 2]), lambda: len(table)):
        try:
            call()
        except lanewise.TableClosedError as error:
            said.append("forked" in str(error))
    try:
        lanewise.Table.open(path)
    except lanewise.TableLockedError:
        said.append("locked")
    # A table of its own works, with threads of its own.
    with lanewise.Table.create(path + "-child", {"v": lanewise.vector(2)}) as own:
        own.put({"id": "x", "v": [1, 2]})
        said.append(own.search(vector=[1, 2]).ids)
    table.close()
    del table
    fine = said == [True, True, True, "locked", ["x"]]
    print(said if not fine else "", end="", flush=True)
    sys.exit(0 if fine else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
table.put({"id": 2, "v": [3, 4]})
print(table.search(vector=[3, 4], k=1).ids, len(table))
table.close()
""",
        tmp_path / "t",
    )
    assert said == "0\n['2'] 2\n"


def test_closing_frees_the_table_though_a_child_lives(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import os, sys, time, lanewise
table = lanewise.Table.create(sys.argv[1], {"n": "integer"})
ends, other = os.pipe()
child = os.fork()
if child == 0:
    # Whatever the child does with what it inherited, the lock is its parent's.
    del table
    os.close(other)
    os.read(ends, 1)
    os._exit(0)
time.sleep(0.2)
try:
    lanewise.Table.open(sys.argv[1])
except lanewise.TableLockedError:
    print("locked")
table.close()
try:
    print(len(lanewise.Table.open(sys.argv[1])))
finally:
    os.close(other)
    os.waitpid(child, 0)
""",
        tmp_path / "t",
    )
    assert said == "locked\n0\n"


def test_neither_pickled_nor_copied(table: Table) -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"neither copied nor pickled: send its path, '.*/t'"):
            refused(table)
    with pytest.raises(TypeError, match=r"use lanewise.Table.create"):
        Table()


INTERRUPTED = """
import sys, time, numpy as np, lanewise
x = np.random.default_rng(0).normal(size=(300_000, 256)).astype("f4")
table = lanewise.Table.create(sys.argv[1], {{"v": lanewise.vector(256, kind={kind!r})}})
{setup}
print("ready", flush=True)
start = time.monotonic()
try:
    {call}
    print("not interrupted")
except KeyboardInterrupt as error:
    print(time.monotonic() - start < 20, getattr(error, "__notes__", []), flush=True)
print(len(table), flush=True)
table.put({{"id": "after", "v": x[0]}})
print(table.search(vector=x[0], k=1).ids in (["after"], ["0"]))
"""


def interrupt(path: Path, after: float = 1.5, **code: str) -> list[str]:
    """Sends SIGINT into a call, so many seconds after it began; what the process printed after."""
    command = [sys.executable, "-c", INTERRUPTED.format(**code), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read().splitlines()
    assert process.returncode == 0
    return said


def test_interrupting_put_many_keeps_what_is_in(tmp_path: Path) -> None:
    call = "table.put_many(None, ids=range(len(x)), vectors={'v': x})"
    quick, count, works = interrupt(tmp_path / "t", kind="hnsw", setup="", call=call)
    assert quick.startswith("True")
    written = int(count)
    assert 0 < written < 300_000
    assert f"documents[:{written}] of 300000 are written and on disk" in quick
    assert works == "True"
    with Table.open(tmp_path / "t") as table:
        assert len(table) == written + 1
        assert table.get(written - 1) is not None


def test_interrupting_searches_leaves_the_table_fine(tmp_path: Path) -> None:
    said = interrupt(
        tmp_path / "t",
        kind="flat",
        setup="table.put_many(None, ids=range(2000), vectors={'v': x[:2000]})",
        call="while True: table.search(vector=x[1], k=1000)",
    )
    assert said == ["True []", "2000", "True"]


def test_interrupting_a_merge_loses_nothing(tmp_path: Path) -> None:
    setup = """
for part in range(2):
    first = part * 12_000
    table.put_many(None, ids=range(first, first + 12_000), vectors={'v': x[first : first + 12_000]})
    table.flush()
"""
    said = interrupt(
        tmp_path / "t", after=0.3, kind="hnsw", setup=setup, call="table.force_merge(1)"
    )
    assert said == ["True []", "24000", "True"]
    with Table.open(tmp_path / "t") as table:
        assert len(table) == 24_001


def test_a_handler_is_refused_what_would_wait_for_itself(table: Table) -> None:
    # Two halves: the merge takes one into the other, and asks for signals on the way.
    x = np.tile(X, (5, 1))
    table.put_many(None, ids=range(len(x)), vectors={"v": x})
    table.flush()
    table.put_many(None, ids=range(len(x), 2 * len(x)), vectors={"v": x})
    said: list[str] = []

    def handler(*_: object) -> None:
        said.append(f"{len(table)} {table.search(vector=X[0], k=1).total}")
        for call in (table.close, table.flush):
            try:
                call()
                said.append("not refused")
            except lanewise.Error as error:
                said.append(str(error))
        table.put({"id": "handler"})

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        table.force_merge(1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert said[0] == "20000 1"
    assert all("in the middle of a change" in one for one in said[1:])
    assert "handler" in table


def test_a_signal_handler_may_use_the_table(table: Table) -> None:
    used: list[int] = []

    def handler(*_: object) -> None:
        used.append(len(table))
        table.put({"id": "handler", "n": 1})

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        x = np.tile(X, (10, 1))
        table.put_many(None, ids=range(len(x)), vectors={"v": x})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert used
    assert len(table) == len(x) + 1


def test_the_gil_is_free_during_writes(table: Table) -> None:
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before, start = ticks, time.monotonic()
        table.put_many(None, vectors={"v": np.tile(X, (3, 1))})
        table.force_merge(1)
        spent = time.monotonic() - start
        assert spent > 0.1, "too short to tell"
        assert ticks - before > 10, f"{ticks - before} ticks in {spent:.1f} s"
    finally:
        stop.set()
        ticker.join()


def test_threads_write_search_and_merge_together(table: Table) -> None:
    table.put_many(None, ids=[f"fixed-{n}" for n in range(500)], vectors={"v": X[:500]})
    failures: list[BaseException] = []
    done = threading.Event()

    def repeat(work: Callable[[np.random.Generator], None], seed: int) -> threading.Thread:
        rng = np.random.default_rng(seed)

        def run() -> None:
            try:
                while not done.is_set():
                    work(rng)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def ask(rng: np.random.Generator) -> None:
        number = int(rng.integers(0, 500))
        found = table.search(vector=X[number], k=3, ef_search=200)
        assert found.distances is not None
        assert found.distances[0] == 0
        assert all(hit.document is not None for hit in found)
        assert len(found) == 3
        assert f"fixed-{number}" in table

    def tidy(rng: np.random.Generator) -> None:
        (table.flush, table.merge, table.force_merge)[rng.integers(3)]()

    running = [repeat(ask, 1), repeat(ask, 2), repeat(tidy, 3)]
    expected: dict[str, int] = {}
    for turn in range(30):
        ids = [f"{n}" for n in np.random.default_rng(turn).integers(0, 300, 40)]
        places = np.random.default_rng(turn + 99).integers(500, 2000, 40)
        table.put_many([{"n": int(place)} for place in places], ids=ids, vectors={"v": X[places]})
        expected |= dict(zip(ids, places.tolist(), strict=True))
        table.delete(ids[:10])
        for key in ids[:10]:
            expected.pop(key, None)
    done.set()
    for thread in running:
        thread.join()
    assert not failures, failures
    assert len(table) == 500 + len(expected)
    assert {key: table[key]["n"] for key in expected} == expected


def test_closing_waits_for_other_threads(table: Table) -> None:
    failures: list[BaseException] = []
    rounds = 0

    def write() -> None:
        nonlocal rounds
        try:
            while True:
                table.put_many(None, vectors={"v": X[:100]})
                rounds += 1
        except lanewise.TableClosedError:
            pass
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    while rounds < 5:
        time.sleep(0.01)
    table.close()
    with Table.open(table.path) as again:
        for writer in writers:
            writer.join()
        assert not failures
        assert len(again) >= rounds * 100
        assert len(again) % 100 == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_process_loses_nothing(tmp_path: Path, seed: int) -> None:
    code = """
import sys, numpy as np, lanewise
table = lanewise.Table.create(sys.argv[1], {"n": "integer", "v": lanewise.vector(4)})
rng = np.random.default_rng(int(sys.argv[2]))
for n in range(10**6):
    table.put({"id": n, "n": n, "v": rng.normal(size=4)})
    print(n, flush=True)
    if n % 50 == 49:
        table.flush()
"""
    command = [sys.executable, "-c", code, str(tmp_path / "t"), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = -1
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged >= 60 + 77 * seed:
                process.kill()
        process.wait()
    with Table.open(tmp_path / "t") as table:
        assert acknowledged >= 60 + 77 * seed
        assert all(table[n]["n"] == n for n in range(acknowledged + 1))
        assert len(table) in (acknowledged + 1, acknowledged + 2)


def test_a_file_that_cannot_grow_loses_nothing(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import errno, resource, signal, sys, lanewise
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = lanewise.Table.create(sys.argv[1], {"text": "text"})
table.put({"id": "first", "text": "x"})
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
acknowledged = 0
try:
    for n in range(1000):
        table.put({"id": n, "text": "y" * 1000})
        acknowledged += 1
except OSError as error:
    print(type(error).__name__, error.errno == errno.EFBIG, sys.argv[1] in str(error))
many = [{"id": f"m{n}", "text": "z" * 1000} for n in range(1000)]
try:
    table.put_many(many)
except OSError as error:
    settled = int(error.__notes__[0].split("[:")[1].split("]")[0])
    print(error.__notes__)
print(acknowledged, settled, len(table), table["first"]["text"])
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
table.close()
table = lanewise.Table.open(sys.argv[1])
known = [str(n) for n in range(acknowledged)] + [f"m{n}" for n in range(settled)]
print(all(one in table for one in known), table.put({"id": "last"}).outcome)
""",
        tmp_path / "t",
    )
    lines = said.splitlines()
    assert lines[0] == "OSError True True"
    assert "of 1000 are written and on disk" in lines[1]
    acknowledged, settled, count, first = lines[2].split()
    assert int(acknowledged) > 50
    # Of the batch that failed some may be in.
    assert int(count) >= int(acknowledged) + int(settled) + 1
    assert first == "x"
    assert lines[3] == "True created"


def test_memory_does_not_grow_as_tables_open_and_close(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import gc, os, sys, numpy as np, lanewise
def resident():
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
x = np.random.default_rng(0).normal(size=(200, 32)).astype("f4")
with lanewise.Table.create(sys.argv[1], {"t": "text", "v": lanewise.vector(32)}) as table:
    table.put_many([{"id": n, "t": f"word {n}"} for n in range(200)], vectors={"v": x})
    table.flush()
    table.put({"id": "head", "t": "head", "v": x[0]})
def opened():
    with lanewise.Table.open(sys.argv[1]) as table:
        assert table.search(vector=x[7], k=1).ids == ["7"]
        assert table.search("word", k=300).total == 200
for _ in range(100):
    opened()
before, files = resident(), len(os.listdir("/proc/self/fd"))
for _ in range(1000):
    opened()
files = len(os.listdir("/proc/self/fd")) - files
print(resident() - before, files, len(os.listdir("/proc/self/task")))
""",
        tmp_path / "t",
        timeout=400,
    )
    grown, files, tasks = map(int, said.split())
    assert grown < 2000, f"{grown} KiB more after 1,000 times"
    assert files == 0
    assert tasks <= 4 + (os.cpu_count() or 1)


def test_collected_without_close(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA)
    table.put({"id": 1})
    del table
    gc.collect()
    with Table.open(tmp_path / "t") as again:
        assert len(again) == 1


def test_daemon_thread_at_exit_does_no_harm(python: Python, tmp_path: Path) -> None:
    said = python(
        """
import sys, threading, time, numpy as np, lanewise
table = lanewise.Table.create(sys.argv[1], {"v": lanewise.vector(64)})
x = np.random.default_rng(0).normal(size=(100_000, 64)).astype("f4")
threading.Thread(target=lambda: table.put_many(None, vectors={"v": x}), daemon=True).start()
while len(table) == 0:
    time.sleep(0.01)
print("leaving")
""",
        tmp_path / "t",
    )
    assert said == "leaving\n"
    with Table.open(tmp_path / "t") as table:
        assert len(table) > 0


def test_interrupting_a_load_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    said = interrupt(
        tmp_path / "t",
        kind="hnsw",
        setup="table.put({'id': 'before', 'v': x[5]})",
        call="table.load(None, ids=range(len(x)), vectors={'v': x})",
    )
    assert said == ["True []", "1", "True"]
    with Table.open(tmp_path / "t") as table:
        assert sorted(table.search(k=9).ids) == ["after", "before"]
        assert table.stats()["segments"] == 0
