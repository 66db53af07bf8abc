"""The process of one library, and the driver's handle on it.

The process answers one request at a time over a pipe and sleeps in between, so it
takes nothing from the library that is being timed. It ends when the driver does, and is
ended when it does not answer in time. What libraries print goes to a log file, whose
last line explains a process that ended by itself.
"""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from .adapters import Make
from .adapters.protocol import NotApplicable, Parameters, Setting
from .dataset import load
from .errors import BenchError

END_SECONDS_MAX = 5


class WorkerFailed(Exception):
    """The library cannot go on; the text is the reason for its row."""


class Inapplicable(WorkerFailed):
    """The library is well, the data are not for it."""


class Worker:
    """The driver's side: starts the process, asks, ends it."""

    def __init__(self, make: Make, folder: Path, log: Path) -> None:
        # Spawned, not forked: the child must not inherit the driver's threads or memory.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._log = log
        self._process = context.Process(
            target=_serve, args=(theirs, make, folder, log), daemon=True
        )
        self._process.start()
        theirs.close()

    def ask(self, verb: str, *args: Any, seconds_max: float) -> Any:
        """The answer of `_Session.verb(*args)`; WorkerFailed where there is none in time."""
        try:
            self._pipe.send((verb, args))
            if not self._pipe.poll(seconds_max):
                self.end()
                raise WorkerFailed(f"{verb}: no answer within {seconds_max:g} s, so it was ended")
            failure, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(END_SECONDS_MAX)
            raise WorkerFailed(self._obituary()) from error
        if failure:
            raise failure(answer)
        return answer

    def held_bytes(self) -> int:
        """Memory of its own that the process holds now; 0 where that cannot be read."""
        return _status(self._process.pid, "RssAnon")

    def end(self) -> None:
        """Ends the process, also in the middle of a request."""
        self._pipe.close()
        self._process.terminate()
        self._process.join(END_SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _obituary(self) -> str:
        status = self._process.exitcode
        text = f"its process ended with status {status}"
        if status == -signal.SIGKILL:
            text += " (killed; perhaps memory ran out)"
        with contextlib.suppress(OSError):
            if lines := self._log.read_text(errors="replace").split("\n")[-5:]:
                said = " ".join(" ".join(lines).split())
                text += f": {said[-200:]}" if said else ""
        return text


class _Session:
    """The worker's side: one library, its data, its index."""

    def __init__(self, make: Make, folder: Path) -> None:
        self.adapter = make()
        self.data = load(folder)
        self.queries = self.adapter.prepare(self.data.queries, self.data.metric)

    def release(self) -> str:
        return self.adapter.release()

    def build(self, parameters: Parameters, threads: int) -> dict[str, Any]:
        """Builds anew. Seconds on the wall and of CPU; bytes per vector grown and stated.

        The vectors as the library takes them are gone when memory is read, so that what has
        grown is what the index keeps. `peak_bytes` is the most this process ever held.
        """
        before = _anonymous_bytes()
        base = self.adapter.prepare(self.data.base, self.data.metric)
        cpu, wall = time.process_time(), time.perf_counter()
        self.adapter.build(base, self.data.metric, parameters, threads)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        del base
        after = _anonymous_bytes()
        grown = None if before is None or after is None else after - before
        return {
            "wall_s": wall,
            "cpu_s": cpu,
            "grown_bytes": None if grown is None else grown / len(self.data.base),
            "own_bytes": self.adapter.own_bytes(),
            "kernels": self.adapter.kernels(),
            "peak_bytes": _status(os.getpid(), "VmHWM"),
        }

    def settings(self) -> list[Setting]:
        return self.adapter.settings()

    def search(
        self, k: int, setting: Setting, threads: int, seconds: float, queries_len: int | None
    ) -> dict[str, Any]:
        """The first `queries_len` queries in batch calls, again and again for `seconds`."""
        queries = self.queries[:queries_len]
        self.adapter.configure(setting, threads)
        self.adapter.search(queries[: max(len(queries) // 8, 1)], k)  # wakes caches and threads
        ids, done, elapsed = None, 0, 0.0
        cpu, start = time.process_time(), time.perf_counter()
        while not done or elapsed < seconds:
            ids = self.adapter.search(queries, k)
            done += len(queries)
            elapsed = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return {"ids": ids, "qps": done / elapsed, "cpu_qps": done / max(cpu, 1e-6)}

    def latency(self, k: int, setting: Setting) -> dict[str, float]:
        """P50 and P99 in microseconds of single queries called from Python, one thread."""
        self.adapter.configure(setting, 1)
        queries = [self.queries[at : at + 1] for at in range(len(self.queries))]
        for query in queries[:100]:
            self.adapter.search(query, k)
        taken = np.empty(len(queries))
        for at, query in enumerate(queries):
            start = time.perf_counter_ns()
            self.adapter.search(query, k)
            taken[at] = time.perf_counter_ns() - start
        p50, p99 = np.percentile(taken, (50, 99)) / 1e3
        return {"p50_us": float(p50), "p99_us": float(p99)}


def _serve(pipe: Connection, make: Make, folder: Path, log: Path) -> None:
    # Ctrl-C reaches the whole group: the driver decides. Results have stdout to themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(said, stream)
    # OpenMP's threads by default spin where they wait. On a machine with other work that costs
    # faiss ten times the CPU of a build, and an idle library should take nothing from the next.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    session: _Session | None = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            verb, args = pipe.recv()
            try:
                session = session or _Session(make, folder)
                pipe.send((None, getattr(session, verb)(*args)))
            except NotApplicable as error:
                pipe.send((Inapplicable, str(error)))
            except BenchError as error:
                pipe.send((WorkerFailed, str(error)))
            except Exception as error:  # a library may raise anything: it costs its own row only
                pipe.send((WorkerFailed, f"{type(error).__name__}: {error}"))


def _anonymous_bytes() -> int | None:
    """Anonymous memory this process holds, freed memory handed back first. Linux only."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc's; elsewhere freed memory counts
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    return None


def _status(pid: int | None, name: str) -> int:
    """A field of a process's status in bytes; 0 where there is none. Linux only."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0
