"""Runs all workers in turn and collects what they measured. Judges nothing.

Builds come first, one library at a time. Then rounds: for each thread count and each
ef, every library once, beginning with another one each round, so that neither drift
of the machine nor the neighbour in the order favours anybody. Single queries come last.
"""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from .adapters import Graph
from .curves import Reading, speed_at
from .dataset import Dataset, Source
from .machine import load_now
from .recall import distances, recall
from .worker import Worker, WorkerFailed

LATENCY_RECALL = 0.95


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `seconds`: the least time one reading takes."""

    libraries: Sequence[str]
    efs: Sequence[int]
    threads: Sequence[int]
    rounds: int
    builds: int
    seconds: float
    k: int = 10
    graph: Graph = field(default_factory=Graph)


@dataclass(slots=True)
class Row:
    """All readings of one library. `reason`: why there are none, or None.

    `builds`: one dict a build, see `worker._Session.build`.
    `searches[threads][ef]`: one dict a round with `recall`, `qps` and `cpu_qps`.
    `latency`: one dict a round with `p50_us` and `p99_us`, at `latency_ef`.
    """

    library: str
    reason: str | None = None
    release: str = ""
    builds: list[dict[str, Any]] = field(default_factory=list)
    searches: dict[int, dict[int, list[dict[str, float]]]] = field(default_factory=dict)
    latency: list[dict[str, float]] = field(default_factory=list)
    latency_ef: int | None = None

    def recall(self, ef: int, threads: int = 1) -> float:
        """The median over the rounds."""
        return median(each["recall"] for each in self.searches[threads][ef])

    def speeds(self, threads: int, target: float, clock: str = "qps") -> list[Reading | None]:
        """Speed at recall `target` in each round; `clock`: "qps" (wall) or "cpu_qps"."""
        rounds = zip(*self.searches[threads].values(), strict=True)
        return [speed_at([(each["recall"], each[clock]) for each in one], target) for one in rounds]


@dataclass(slots=True)
class Results:
    """`loads`: the machine's load average before the builds, before each round, at the end."""

    rows: list[Row]
    loads: list[float] = field(default_factory=list)


def run(plan: Plan, source: Source, data: Dataset, truth: np.ndarray) -> Results:
    """Carries the plan out. A library that fails costs its own row only."""
    results = Results([Row(library) for library in plan.libraries], [load_now()])
    threshold = distances(data, truth)[:, -1]
    with ExitStack() as stack:
        crew = _Crew(results.rows, source, stack)
        for number in range(plan.builds):
            for row in crew.running():
                _say(f"build {number + 1}/{plan.builds}: {row.library}")
                crew.ask(row, row.builds, "build", plan.graph, max(plan.threads))
        for number in range(plan.rounds):
            results.loads.append(load_now())
            for threads in plan.threads:
                _say(f"round {number + 1}/{plan.rounds}, threads: {threads}, load {load_now()}")
                for ef in plan.efs:
                    for row in crew.running(number):
                        readings = row.searches.setdefault(threads, {}).setdefault(ef, [])
                        reading = crew.ask(
                            row, readings, "search", plan.k, ef, threads, plan.seconds
                        )
                        if reading:
                            reading["recall"] = recall(data, threshold, reading.pop("ids"))
        for number in range(plan.rounds):
            _say(f"single queries {number + 1}/{plan.rounds}")
            for row in crew.running(number):
                row.latency_ef = min(plan.efs, key=lambda ef: abs(row.recall(ef) - LATENCY_RECALL))
                crew.ask(row, row.latency, "latency", plan.k, row.latency_ef)
    results.loads.append(load_now())
    return results


class _Crew:
    """The workers of those rows that are still running; all are ended with the stack."""

    def __init__(self, rows: list[Row], source: Source, stack: ExitStack) -> None:
        self._rows = rows
        self._workers: dict[str, Worker] = {}
        for row in rows:
            worker = self._workers[row.library] = Worker(row.library, source)
            stack.callback(worker.end)
            try:
                row.release = worker.ask("release")
            except WorkerFailed as failure:
                self._drop(row, failure)

    def running(self, first: int = 0) -> list[Row]:
        """Rows without a failure so far, the order turned by `first`."""
        rows = [row for row in self._rows if row.reason is None]
        first %= max(len(rows), 1)
        return rows[first:] + rows[:first]

    def ask(
        self, row: Row, readings: list[dict[str, Any]], verb: str, *args: Any
    ) -> dict[str, Any] | None:
        """Appends the answer to `readings`; on a failure the row ends and None comes back."""
        try:
            answer = self._workers[row.library].ask(verb, *args)
        except WorkerFailed as failure:
            self._drop(row, failure)
            return None
        readings.append(answer)
        return answer

    def _drop(self, row: Row, failure: WorkerFailed) -> None:
        row.reason = str(failure)
        self._workers[row.library].end()
        _say(f"{row.library} not run: {row.reason}")


_START = time.monotonic()


def _say(text: str) -> None:
    print(f"[{time.monotonic() - _START:4.0f} s] {text}", file=sys.stderr, flush=True)
