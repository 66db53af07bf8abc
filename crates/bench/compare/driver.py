"""Runs all workers in turn and collects what they measured. Judges nothing.

Ours are built first and stay. Peers follow, one at a time, as long as the next may fit
into memory beside those that live (by the most that any has needed so far); these are a
wave: each is scouted (every setting once, briefly, to find those worth measuring), then
come rounds: for each thread count and each step through the settings, every library
once, beginning with another one each round, so that neither drift of the machine nor the
neighbour in the order favours anybody. Single queries come last. Then the wave's peers
end and the next are built. Ours are measured anew in each wave, so ratios to them are
always formed inside a round, whichever wave a peer was in.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .adapters import Make, is_ours
from .adapters.protocol import K, Parameters, Setting, label
from .curves import TARGETS, worth
from .dataset import Dataset
from .machine import load_now
from .recall import distances, recall
from .record import Row
from .worker import Inapplicable, Worker, WorkerFailed

LATENCY_RECALL = 0.95
LATENCY_ROUNDS_MAX = 3
SCOUT_SHARE = 4
"""A scouting search asks one query in so many."""

MEMORY_MARGIN = 1.25
"""The next library may need so many times the most that one has needed yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `seconds`: the least time one reading takes. The two limits: a library
    that takes longer for a build, or for any other answer, is ended. `memory_bytes`: what
    all workers together may hold."""

    threads: Sequence[int]
    rounds: int
    builds: int
    seconds: float
    memory_bytes: int
    build_seconds_max: float = 2_400
    answer_seconds_max: float = 300
    k: int = K
    parameters: Parameters = field(default_factory=Parameters)


@dataclass(slots=True)
class Results:
    """`loads`: the machine's load average before the builds and before each round of each
    wave, and at the end. `waves`: who was alive together, with the bytes they held."""

    rows: list[Row]
    loads: list[float] = field(default_factory=list)
    waves: list[tuple[list[str], int]] = field(default_factory=list)


def run(
    plan: Plan,
    libraries: Mapping[str, Make],
    folder: Path,
    truth: np.ndarray,
    data: Dataset,
    logs: Path,
) -> Results:
    """Carries the plan out. A library that fails costs its own row only.

    `truth` (m, k or more): the exact neighbours; `logs`: where what libraries print goes.
    """
    rows = [Row(library) for library in libraries]
    results = Results(rows, [load_now()])
    crew = _Crew(plan, libraries, folder, logs)
    judge = _Judge(data, distances(data, truth[:, : plan.k])[:, -1])
    try:
        for row in (row for row in rows if is_ours(row.library)):
            if crew.has_room():
                crew.take_on(row, judge)
            else:
                row.reason = "no memory left beside the others: ask for fewer with --libraries"
        waiting = [row for row in rows if not is_ours(row.library)]
        while True:
            newcomers = 0
            while waiting and (not newcomers or crew.has_room()):
                newcomers += crew.take_on(waiting.pop(0), judge)
            _measure(plan, crew, judge, len(results.waves), results.loads)
            results.waves.append(([row.library for row in crew.running()], crew.held_bytes()))
            crew.dismiss_peers()
            if not waiting:
                break
    finally:
        crew.end()
    results.loads.append(load_now())
    return results


def _measure(plan: Plan, crew: "_Crew", judge: "_Judge", wave: int, loads: list[float]) -> None:
    """The rounds of one wave."""
    for number in range(plan.rounds):
        loads.append(load_now())
        turn = {"wave": wave, "round": number}
        for threads in plan.threads:
            say(
                f"wave {wave + 1}, round {number + 1}/{plan.rounds}, threads: {threads}, "
                f"{len(crew.running())} libraries, load {load_now()}"
            )
            steps = max((len(row.settings) for row in crew.running()), default=0)
            for step in range(steps):
                for row in crew.running(number):
                    # Spread evenly: who has few settings should not be through early.
                    at = step * len(row.settings) // steps
                    if at > (step - 1) * len(row.settings) // steps:
                        setting = row.settings[at]
                        reading = crew.search(row, judge, setting, threads, plan.seconds)
                        if reading:
                            row.add(threads, label(setting), {**turn, **reading})
    for number in range(min(plan.rounds, LATENCY_ROUNDS_MAX)):
        say(f"wave {wave + 1}, single queries {number + 1}")
        for row in crew.running(number):
            setting = min(
                row.settings, key=lambda each: abs(row.recall(label(each)) - LATENCY_RECALL)
            )
            row.latency_label = label(setting)
            reading = crew.ask(row, "latency", plan.k, setting)
            if reading:
                row.latency.append(reading)


@dataclass(frozen=True, slots=True)
class _Judge:
    data: Dataset
    threshold: np.ndarray

    def recall(self, ids: np.ndarray) -> float:
        return recall(self.data, self.threshold, ids)


class _Crew:
    """The workers that live now, with their rows."""

    def __init__(self, plan: Plan, libraries: Mapping[str, Make], folder: Path, logs: Path) -> None:
        self._plan, self._libraries, self._folder, self._logs = plan, libraries, folder, logs
        self._alive: dict[str, tuple[Row, Worker]] = {}
        self._peak_bytes = 0

    def running(self, first: int = 0) -> list[Row]:
        """The rows of those that live, the order turned by `first`."""
        rows = [row for row, _ in self._alive.values()]
        first %= max(len(rows), 1)
        return rows[first:] + rows[:first]

    def held_bytes(self) -> int:
        """Memory that all hold together; the mapped data, which they share, not counted."""
        return sum(worker.held_bytes() for _, worker in self._alive.values())

    def has_room(self) -> bool:
        """Whether one more may need as much as any has needed, and some."""
        return self.held_bytes() + MEMORY_MARGIN * self._peak_bytes <= self._plan.memory_bytes

    def take_on(self, row: Row, judge: _Judge) -> bool:
        """Starts a row's worker, builds, and finds the settings worth measuring."""
        log = self._logs / f"{row.library}.log"
        worker = Worker(self._libraries[row.library], self._folder, log)
        self._alive[row.library] = (row, worker)
        row.release = self.ask(row, "release") or ""
        for number in range(self._plan.builds):
            if row.library in self._alive:
                say(f"build {number + 1}/{self._plan.builds}: {row.library}")
                build = self.ask(row, "build", self._plan.parameters, max(self._plan.threads))
                if build:
                    row.builds.append(build)
                    say(
                        f"    {build['wall_s']:.1f} s, {build['cpu_s']:.1f} s of CPU, "
                        f"at most {build['peak_bytes'] / 2**30:.2f} GiB"
                    )
                    self._peak_bytes = max(self._peak_bytes, build["peak_bytes"])
        points = {}
        settings = self.ask(row, "settings") if row.library in self._alive else []
        for setting in settings or []:
            share = max(len(judge.data.queries) // SCOUT_SHARE, 1)
            reading = self.search(row, judge, setting, 1, self._plan.seconds / 4, share)
            if reading is None:
                break
            # By CPU time: a brief reading on the wall says too much about others on the machine.
            points[label(setting)] = (reading["recall"], reading["cpu_qps"])
        kept = worth(points, TARGETS)
        row.settings = [each for each in settings or [] if label(each) in kept]
        return row.library in self._alive

    def search(
        self,
        row: Row,
        judge: _Judge,
        setting: Setting,
        threads: int,
        seconds: float,
        queries_len: int | None = None,
    ) -> dict[str, Any] | None:
        """A reading with its recall, or None where the row has ended."""
        if row.library not in self._alive:
            return None
        reading = self.ask(row, "search", self._plan.k, setting, threads, seconds, queries_len)
        if reading:
            reading["recall"] = judge.recall(reading.pop("ids"))
        return reading

    def ask(self, row: Row, verb: str, *args: Any) -> Any:
        """The worker's answer; on a failure the row ends with the reason and None comes back."""
        limit = self._plan.build_seconds_max if verb == "build" else self._plan.answer_seconds_max
        try:
            return self._alive[row.library][1].ask(verb, *args, seconds_max=limit)
        except WorkerFailed as failure:
            row.reason = str(failure)
            row.applicable = not isinstance(failure, Inapplicable)
            self._alive.pop(row.library)[1].end()
            say(f"{row.library} not run: {row.reason}")
            return None

    def dismiss_peers(self) -> None:
        """Ends those that are not ours."""
        for library in [each for each in self._alive if not is_ours(each)]:
            self._alive.pop(library)[1].end()

    def end(self) -> None:
        """Ends all."""
        for _, worker in self._alive.values():
            worker.end()
        self._alive.clear()


_START = time.monotonic()


def say(text: str) -> None:
    """A line of progress on stderr."""
    print(f"[{time.monotonic() - _START:5.0f} s] {text}", file=sys.stderr, flush=True)
