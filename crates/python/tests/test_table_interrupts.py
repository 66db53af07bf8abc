"""Signals while one long search runs."""

from collections.abc import Callable
from pathlib import Path

Python = Callable[..., str]

# One long search: many figures over many documents.
LONG = """
table.load([{'n': n} for n in range(200_000)])
figures = {f"f{n}": {"stats": {"field": "n"}} for n in range(5000)}
"""


def test_interrupting_one_long_search_ends_it(python: Python, tmp_path: Path) -> None:
    said = python(
        f"""
import signal, sys, time, lanewise
table = lanewise.Table.create(sys.argv[1], {{"n": "integer"}})
{LONG}
def spent():
    start = time.monotonic()
    try:
        table.search(k=0, aggs=figures)
    except KeyboardInterrupt:
        print("interrupted")
    return time.monotonic() - start
spent()
whole = min(spent() for _ in range(3))
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, whole / 10)
print(spent() < 0.6 * whole, table.search(filter={{"n": 7}}).total)
""",
        tmp_path / "t",
    )
    assert said == "interrupted\nTrue 1\n"


def test_a_handler_may_search_while_a_search_runs_but_not_close(
    python: Python, tmp_path: Path
) -> None:
    said = python(
        f"""
import signal, sys, lanewise
with lanewise.Engine(sys.argv[1]) as engine:
    table = engine.create("t", {{"n": "integer"}})
    {"    ".join(LONG.splitlines(keepends=True)[1:])}
    said = []
    def handler(*_):
        said.append(table.search(filter={{"n": 7}}).total)
        for call in (table.close, engine.close):
            try:
                call()
                said.append("closed")
            except lanewise.Error as error:
                said.append("can neither change nor close" in str(error))
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    found = table.search(k=0, aggs=figures)
    print(said, found.total, found.aggs["f9"]["max"])
""",
        tmp_path / "e",
    )
    assert said == "[1, True, True] 200000 199999.0\n"


# A head whose graph takes a while to build anew.
UNSEALED = """
import os, signal, sys, numpy as np, lanewise
x = np.random.default_rng(0).normal(size=(30_000, 64)).astype(np.float32)
def unless_interrupted(call):
    try:
        return call()
    except KeyboardInterrupt:
        return "interrupted"
signal.signal(signal.SIGALRM, signal.default_int_handler)
"""


def test_interrupting_an_opening_ends_it_and_loses_nothing(python: Python, tmp_path: Path) -> None:
    said = python(
        f"""
{UNSEALED}
if os.fork() == 0:
    table = lanewise.Table.create(sys.argv[1], {{"v": lanewise.vector(64)}})
    table.put_many(None, ids=range(len(x)), vectors={{"v": x}})
    os._exit(0)
os.wait()
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(unless_interrupted(lambda: lanewise.Table.open(sys.argv[1])))
table = lanewise.Table.open(sys.argv[1])
print(len(table))
table.close()
# What would be built anew again was sealed.
print([one.sealed for one in lanewise.Table.open(sys.argv[1]).segments() if one.live])
""",
        tmp_path / "t",
    )
    assert said == "interrupted\n30000\n[True]\n"


def test_interrupting_an_engines_opening_and_closing(python: Python, tmp_path: Path) -> None:
    said = python(
        f"""
{UNSEALED}
if os.fork() == 0:
    table = lanewise.Engine(sys.argv[1]).create("t", {{"v": lanewise.vector(64, code="i8")}})
    table.put_many(None, ids=range(len(x)), vectors={{"v": x}})
    os._exit(0)
os.wait()
with lanewise.Engine(sys.argv[1]) as engine:
    said = []
    def handler(*_):
        try:
            engine["t"]
        except lanewise.Error as error:
            said.append("in the middle" in str(error))
            raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    print(unless_interrupted(lambda: engine["t"]), said)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    print(len(engine["t"]))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    unless_interrupted(engine.close)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(engine.closed)
with lanewise.Engine(sys.argv[1]) as engine:
    print(len(engine["t"]))
""",
        tmp_path / "e",
    )
    assert said == "interrupted [True]\n30000\nTrue\n30000\n"
