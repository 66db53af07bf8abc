"""Rounds: the contenders of a case take turns, and each result must be right before it counts."""

import sys
from dataclasses import dataclass, field
from statistics import median

from . import limits
from .cases import Case, Form
from .contender import Contender, Memory, Prepared, Workplace
from .expected import TOLERANCE
from .native import Harness


@dataclass
class Row:
    """One contender's figures in one case: nanoseconds for each distance, a round each."""

    case: Case
    library: str
    variant: str
    ns: list[float] = field(default_factory=list)
    reason: str = ""  # why there is none
    off: float = 0.0  # largest error seen, relative to the sum of the terms' sizes

    @property
    def median(self) -> float:
        return median(self.ns)

    @property
    def gb_per_second(self) -> float:
        """Bytes of rows that went through, of both operands where each is new."""
        bytes_each = self.case.row_bytes / self.case.results_per_row
        if self.case.form == Form.ONE:
            bytes_each += self.case.query_bytes
        return bytes_each / self.median


def ratio(other: Row, row: Row) -> float:
    """How many times as fast as `other` `row` is: the median of the rounds' ratios."""
    return median(theirs / ours for theirs, ours in zip(other.ns, row.ns, strict=True))


@dataclass(frozen=True)
class Plan:
    """Rounds, and how long a timing should take."""

    rounds: int
    nanoseconds: float


def run(
    case: Case, contenders: list[Contender], memory: Memory, harness: Harness, plan: Plan
) -> list[Row]:
    """Measures `case`; a contender whose results are wrong is told, not measured."""
    place = Workplace(memory, case)
    rows, turns = [], []
    for contender in contenders:
        prepared = contender.prepare(place)
        if prepared is None:
            continue
        row = Row(case, contender.library, contender.variant)
        rows.append(row)
        passes = _calibrate(place, prepared, harness, plan)
        if contender.library != limits.NAME:
            place.memory.out.fill(0)
            place.advance(prepared)
            harness.time(prepared.job)
            off = row.off = place.check(prepared)
            exact = prepared.result != "f4" and prepared.result != "f8"
            if not off <= (0 if exact else TOLERANCE):
                row.reason = f"computes something else (off by {off:.1e})"
                continue
        turns.append((row, prepared, passes))
    for _ in range(plan.rounds):
        for row, prepared, passes in turns:
            place.advance(prepared)
            if not place.from_memory:
                harness.time(prepared.job)  # back into the caches
            row.ns.append(harness.time(prepared.job, passes) / passes / place.results)
    return rows


def _calibrate(place: Workplace, prepared: Prepared, harness: Harness, plan: Plan) -> int:
    """Passes that take about as long as the plan wants; one where each pass must be new memory."""
    place.advance(prepared)
    harness.time(prepared.job)
    if place.from_memory:
        return 1
    once = max(1.0, harness.time(prepared.job, 3) / 3)
    return max(1, min(100_000, round(plan.nanoseconds / once)))


class Progress:
    """A line on a terminal, a dot in a log."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def step(self, case: Case) -> None:
        self.done += 1
        if sys.stderr.isatty():
            text = f"{self.done}/{self.total} {case.kernel} {case.dim} {case.form}"
            print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)
        elif self.done % 50 == 0 or self.done == self.total:
            print(f"{self.done} of {self.total} cases measured", file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty():
            print(file=sys.stderr)
