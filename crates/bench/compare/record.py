"""What was measured of one data set, as it lies on disk between the run and the page."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from .curves import Point, Reading, Turn, pareto, speed_at
from .errors import BenchError


@dataclass(slots=True)
class Row:
    """All readings of one library. `reason`: why there are none, or None; `applicable`:
    whether the data are for it at all.

    `builds`: one dict a build, see `worker._Session.build`.
    `searches[threads][label of a setting]`: one dict a turn with `wave`, `round`,
    `recall`, `qps` and `cpu_qps`.
    `latency`: one dict a round with `p50_us` and `p99_us`, at the setting `latency_label`.
    """

    library: str
    reason: str | None = None
    applicable: bool = True
    release: str = ""
    settings: list[dict[str, Any]] = field(default_factory=list)
    builds: list[dict[str, Any]] = field(default_factory=list)
    searches: dict[int, dict[str, list[dict[str, float]]]] = field(default_factory=dict)
    latency: list[dict[str, float]] = field(default_factory=list)
    latency_label: str = ""

    def add(self, threads: int, label: str, reading: dict[str, float]) -> None:
        """One more reading of a setting."""
        self.searches.setdefault(threads, {}).setdefault(label, []).append(reading)

    def recall(self, label: str, threads: int = 1) -> float:
        """The median over the turns."""
        return median(each["recall"] for each in self.searches[threads][label])

    def points(self, threads: int, clock: str = "qps") -> dict[str, Point]:
        """(recall, queries a second) of each setting, medians over the turns."""
        return {
            label: (self.recall(label, threads), median(each[clock] for each in readings))
            for label, readings in self.searches.get(threads, {}).items()
        }

    def speeds(self, threads: int, target: float, clock: str = "qps") -> dict[Turn, Reading | None]:
        """Speed at recall `target` in each turn; `clock`: "qps" (wall) or "cpu_qps".

        Which settings make the front is decided by the medians, once for all turns: were it
        decided anew in each, a lucky reading would win, and who has more settings more luck.
        """
        points = self.points(threads, clock)
        best = set(pareto(list(points.values())))
        front = sorted((point[0], label) for label, point in points.items() if point in best)
        turns: dict[Turn, list[Point]] = {}
        for recall, label in front:
            for each in self.searches[threads][label]:
                turn = int(each["wave"]), int(each["round"])
                turns.setdefault(turn, []).append((recall, each[clock]))
        return {turn: speed_at(found, target) for turn, found in sorted(turns.items())}


@dataclass(slots=True)
class Record:
    """`data`: what the data set was; `facts`: machine and run; `plan`: as asked for."""

    name: str
    data: dict[str, Any]
    facts: dict[str, str]
    plan: dict[str, Any]
    loads: list[float]
    waves: list[tuple[list[str], int]]
    rows: list[Row]

    @property
    def done(self) -> list[Row]:
        """The rows that have readings and no reason to have none."""
        return [row for row in self.rows if row.reason is None and row.searches]

    def save(self, path: Path) -> None:
        """Writes it as JSON, whole or not at all."""
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(asdict(self), indent=1) + "\n")
        fresh.rename(path)


def load(path: Path) -> Record:
    """What `save` wrote; BenchError where it is absent or of another kind."""
    try:
        fields = json.loads(path.read_text())
        rows = [Row(**row) for row in fields.pop("rows")]
        for row in rows:  # JSON's keys are strings
            row.searches = {int(threads): each for threads, each in row.searches.items()}
        return Record(rows=rows, **fields)
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise BenchError(f"cannot read the record {path} ({error}): remove it") from error
