"""The process of one library, and the driver's handle on it.

The process answers one request at a time over a pipe and sleeps in between, so it
takes nothing from the library that is being timed. It ends when the driver does.
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

from .adapters import LIBRARIES, Graph, NotApplicable
from .dataset import Source
from .errors import BenchError

END_SECONDS_MAX = 5


class WorkerFailed(Exception):
    """The library cannot go on; the text is the reason for its row."""


class Worker:
    """The driver's side: starts the process, asks, ends it."""

    def __init__(self, library: str, source: Source) -> None:
        self.library = library
        # Spawned, not forked: the child must not inherit the driver's threads or memory.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, library, source), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, verb: str, *args: Any) -> Any:
        """The answer of `_Session.verb(*args)`; WorkerFailed where there is none."""
        try:
            self._pipe.send((verb, args))
            good, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(END_SECONDS_MAX)
            raise WorkerFailed(f"its process ended with status {self._process.exitcode}") from error
        if not good:
            raise WorkerFailed(answer)
        return answer

    def end(self) -> None:
        """Ends the process, also in the middle of a request."""
        self._pipe.close()
        self._process.terminate()
        self._process.join(END_SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class _Session:
    """The worker's side: one library, its data, its index."""

    def __init__(self, library: str, source: Source) -> None:
        self.adapter = LIBRARIES[library]()
        data = source.load()
        self.base, self.queries = (self.adapter.prepare(rows) for rows in (data.base, data.queries))

    def release(self) -> str:
        return self.adapter.release()

    def build(self, graph: Graph, threads: int) -> dict[str, Any]:
        """Builds anew. Seconds on the wall and of CPU; bytes per vector grown and stated."""
        before = _anonymous_bytes()
        cpu, wall = time.process_time(), time.perf_counter()
        self.adapter.build(self.base, graph, threads)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = _anonymous_bytes()
        grown = None if before is None or after is None else (after - before) / len(self.base)
        return {
            "wall_s": wall,
            "cpu_s": cpu,
            "grown_bytes": grown,
            "own_bytes": self.adapter.own_bytes(),
            "kernels": self.adapter.kernels(),
        }

    def search(self, k: int, ef: int, threads: int, seconds: float) -> dict[str, Any]:
        """All queries in batch calls, again and again for at least `seconds`."""
        self.adapter.configure(ef, threads)
        ids = self.adapter.search(self.queries, k)  # wakes caches and threads, untimed
        done, elapsed = 0, 0.0
        cpu, start = time.process_time(), time.perf_counter()
        while elapsed < seconds:
            self.adapter.search(self.queries, k)
            done += len(self.queries)
            elapsed = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return {"ids": ids, "qps": done / elapsed, "cpu_qps": done / cpu}

    def latency(self, k: int, ef: int) -> dict[str, float]:
        """P50 and P99 in microseconds of single queries called from Python, one thread."""
        self.adapter.configure(ef, 1)
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


def _serve(pipe: Connection, library: str, source: Source) -> None:
    # Ctrl-C reaches the whole group: the driver decides. Results have stdout to themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    session: _Session | None = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            verb, args = pipe.recv()
            try:
                session = session or _Session(library, source)
                pipe.send((True, getattr(session, verb)(*args)))
            except (NotApplicable, BenchError) as error:
                pipe.send((False, str(error)))
            except Exception as error:  # a library may raise anything: it costs its own row only
                pipe.send((False, f"{type(error).__name__}: {error}"))


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
