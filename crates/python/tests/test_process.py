"""What an index does to its process: threads, the GIL, signals, memory, forks, neighbours."""

import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import lanewise
import numpy as np
import pytest
from conftest import vectors

Python = Callable[..., str]


def test_no_thread_outlives_a_call(python: Python) -> None:
    said = python(
        """
import os, time, numpy as np
def threads(deadline=time.monotonic() + 10):
    # A thread that has done its work is listed until the system has taken it down.
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(os.listdir("/proc/self/task"))
before = len(os.listdir("/proc/self/task"))
import lanewise
print(len(os.listdir("/proc/self/task")) - before)
x = np.random.default_rng(0).normal(size=(3000, 16))
index = lanewise.Index(16).add(x, num_threads=4)
print(threads() - before)
index.search(x, num_threads=4)
print(threads() - before)
"""
    )
    assert said.split() == ["0", "0", "0"]


def test_the_gil_is_free_during_add_and_search() -> None:
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    x = np.random.default_rng(0).normal(size=(12_000, 96)).astype(np.float32)
    index = lanewise.Index(96)
    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        for call in (lambda: index.add(x, num_threads=1), lambda: index.search(x, num_threads=1)):
            before, start = ticks, time.monotonic()
            call()
            spent = time.monotonic() - start
            assert spent > 0.1, "too short to tell"
            # A call that kept the GIL would leave none, or two at its ends.
            assert ticks - before > 5, f"{ticks - before} ticks in {spent:.1f} s"
    finally:
        stop.set()
        ticker.join()


def test_threads_search_while_one_adds() -> None:
    x = vectors("f32", 3000, 16)
    index = lanewise.Index(16).add(x[:1000])
    failures: list[BaseException] = []
    done = threading.Event()

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            while not done.is_set():
                chosen = rng.integers(0, 1000, 5)
                ids, found = index.search(x[chosen], 3, ef_search=100)
                assert ids.shape == (5, 3)
                assert (found[:, 0] == 0).all()
                assert index.info()["len"] >= len(ids)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for start in range(1000, 3000, 100):
        index.add(x[start : start + 100])
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) == 3000


INTERRUPTED = """
import sys, time, numpy as np, lanewise
rng = np.random.default_rng(0)
{setup}
print("ready", flush=True)
start = time.monotonic()
try:
    {call}
    print("not interrupted")
except KeyboardInterrupt as error:
    print(time.monotonic() - start < 20, getattr(error, "__notes__", []), flush=True)
print(len(index), index.search(x[:1], 1)[0].tolist())
"""


def interrupt(setup: str, call: str) -> list[str]:
    """Sends SIGINT into a call that would last minutes; what the process printed after."""
    code = INTERRUPTED.format(setup=setup, call=call)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    return out.splitlines()


def test_ctrl_c_ends_an_add_and_keeps_what_is_in() -> None:
    setup = "x = rng.normal(size=(400_000, 64)).astype('f4'); index = lanewise.Index(64)"
    first, second = interrupt(setup, "index.add(x)")
    added = int(second.split()[0])
    assert first == (
        f"True ['cancelled: the first {added} of 400000 vectors were added and can be searched']"
    )
    assert 0 < added < 400_000
    assert second == f"{added} [[0]]"


def test_ctrl_c_ends_a_search() -> None:
    setup = """x = rng.normal(size=(200_000, 64)).astype('f4')
index = lanewise.Index(64, kind='flat').add(x)"""
    assert interrupt(setup, "index.search(x)") == ["True []", "200000 [[0]]"]


def test_signal_handlers_may_search_but_not_change(python: Python) -> None:
    said = python(
        """
import signal, numpy as np, lanewise
x = np.random.default_rng(0).normal(size=(20_000, 64)).astype("f4")
index, other = lanewise.Index(64), lanewise.Index(64).add(x[:10])
seen = []
def handler(number, frame):
    seen.append((other.search(x[0], 1)[0][0], 0 < len(index) < 20_000, repr(index)[:4]))
    seen.append(index.search(x[0], 1)[0].shape)
    try:
        index.add(x[0])
    except lanewise.Error as error:
        seen.append(str(error)[:33])
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
index.add(x)
print(seen, len(index))
"""
    )
    assert (
        said == "[(np.int64(0), True, '<lan'), (1,), 'this thread is in the middle of a'] 20000\n"
    )


MEMORY = """
import resource, numpy as np, lanewise
{setup}
with open("/proc/self/status") as status:
    kib = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
limit = kib * 1024 + 300 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    {call}
    print("no error")
except MemoryError as error:
    print(error)
print(len(index), index.search(small[:1], 1)[0].tolist())
"""


@pytest.mark.parametrize(
    ("setup", "call", "message"),
    [
        (
            "x = np.ones((2_000_000, 64), 'f4')",
            "index.add(x)",
            "no memory for 512256000 more bytes",
        ),
        ("x = np.ones((2_000_000, 64), 'i1')", "index.add(x)", "no memory to convert x, 512000000"),
        (
            "x = np.ones((2_000_000, 64), 'f8')",
            "index.search(x)",
            "no memory to convert q, 512000000",
        ),
        ("x = np.ones((500_000, 64), 'f4')", "index.search(x, 100)", "bytes of results"),
        ("x = np.zeros(500_000, 'i8')", "index.search_by_id(x, 100)", "bytes of results"),
    ],
    ids=["vectors", "conversion of x", "conversion of q", "results", "results by id"],
)
def test_lack_of_memory_is_an_error(python: Python, setup: str, call: str, message: str) -> None:
    setup = f"""{setup}
small = np.random.default_rng(0).normal(size=(1000, 64))
index = lanewise.Index(64, kind="flat").add(small)"""
    said = python(MEMORY.format(setup=setup, call=call)).splitlines()
    assert message in said[0]
    assert said[1] == "1000 [[0]]"


def with_isa(level: str) -> dict[str, str]:
    return {**os.environ, "LANEWISE_ISA": level}


def test_unknown_isa_is_an_error_that_lists_the_known(python: Python, tmp_path: object) -> None:
    lanewise.Index(2).add([1, 2]).save(f"{tmp_path}/index")
    code = """
import sys, lanewise
for call in (lambda: lanewise.Index(3), lambda: lanewise.Index.open(sys.argv[1])):
    try:
        call()
    except lanewise.IsaError as error:
        print(error)
"""
    lines = python(code, f"{tmp_path}/index", env=with_isa("nonsense")).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert 'LANEWISE_ISA="nonsense"' in line
        assert "use one of scalar" in line


def test_isa_can_be_forced(python: Python) -> None:
    code = """
import numpy as np, lanewise
x = np.random.default_rng(0).integers(-9, 9, (300, 20))
index = lanewise.Index(20).add(x)
info = index.info()
print(info["isa"], set(info["kernels"].values()), index.search(x, 5)[1].sum())
"""
    forced = python(code, env=with_isa("scalar"))
    assert forced.startswith("scalar {'scalar'} ")
    # Whole numbers: every instruction set computes the same.
    assert python(code).split()[-1] == forced.split()[-1]


def test_forked_children_can_search(python: Python) -> None:
    said = python(
        """
import os, numpy as np, lanewise
x = np.random.default_rng(0).normal(size=(2000, 16))
index = lanewise.Index(16).add(x)
index.search(x, 3, num_threads=3)
child = os.fork()
if child == 0:
    fine = index.search(x, 1, num_threads=3)[0].ravel().tolist() == list(range(2000))
    index.add(x)
    os._exit(0 if fine and len(index) == 4000 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(index))
"""
    )
    assert said == "0 2000\n"


def test_daemon_thread_at_exit_does_no_harm(python: Python) -> None:
    said = python(
        """
import threading, time, numpy as np, lanewise
x = np.random.default_rng(0).normal(size=(200_000, 64)).astype("f4")
threading.Thread(target=lanewise.Index(64).add, args=(x,), daemon=True).start()
time.sleep(0.5)
print("leaving")
"""
    )
    assert said == "leaving\n"


# Each vector's nearest is itself.
USES = {
    "lanewise": """import lanewise
results.append(lanewise.Index(32, kind="flat").add(x).search(x, 1)[0])""",
    "numpy": """results.append((x @ x.T - (x**2).sum(1) / 2).argmax(1))""",
    "faiss": """import faiss
exact = faiss.IndexFlatL2(32)
exact.add(x)
results.append(exact.search(x, 1)[1])""",
    "torch": """import torch
tensor = torch.from_numpy(x)
results.append(torch.cdist(tensor, tensor).argmin(1).numpy())""",
}


@pytest.mark.parametrize("other", ["numpy", "faiss", "torch"])
def test_works_beside_others_in_any_order(python: Python, other: str) -> None:
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"{other} is not installed")
    for order in itertools.permutations(["lanewise", other]):
        # Twice: each also runs after the other has started its threads.
        code = "\n".join(
            [
                "import numpy as np; results = []",
                "x = np.random.default_rng(0).normal(size=(2000, 32)).astype('f4')",
                *(USES[name] for name in order * 2),
                "print([(r.ravel() == np.arange(2000)).all().item() for r in results])",
            ]
        )
        assert python(code) == "[True, True, True, True]\n"
