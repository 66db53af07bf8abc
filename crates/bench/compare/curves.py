"""Queries a second at equal recall: Pareto front, interpolation, ratios by round."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

Point = tuple[float, float]
"""(recall, queries a second)."""

Turn = tuple[int, int]
"""(wave, round): what was measured side by side."""

TARGETS = (0.90, 0.95, 0.99)
"""The recalls at which speeds are compared."""

SCOUT_SLACK = 1.25
# A scouted recall is of fewer queries and errs by about a hundredth at 0.9; above the
# highest target a setting that misses 0.6 of what may be missed at it is far enough.
BELOW = 0.02
ABOVE = 0.6


@dataclass(frozen=True, slots=True)
class Reading:
    """`value` at a recall. `above`: even the cheapest setting finds more than was asked."""

    value: float
    above: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The median over the rounds, with the lowest and the highest."""

    median: float
    low: float
    high: float
    above: bool = False


def pareto(points: Sequence[Point]) -> list[Point]:
    """Those points that no other beats in both: recall rising, speed falling."""
    front: list[Point] = []
    for recall, qps in sorted(points, reverse=True):
        if not front or qps > front[-1][1]:
            front.append((recall, qps))
    return front[::-1]


def speed_at(front: Sequence[Point], target: float) -> Reading | None:
    """Speed at recall `target`: log(speed) linear in recall between the points of a front.

    Below the front its cheapest point serves (it does find enough). None above it.
    """
    if not front or target > front[-1][0]:
        return None
    if target <= front[0][0]:
        return Reading(front[0][1], above=target < front[0][0])
    for (low, fast), (high, slow) in pairwise(front):
        if target <= high:
            share = (target - low) / (high - low)
            return Reading(math.exp(math.log(fast) + share * (math.log(slow) - math.log(fast))))
    raise AssertionError("a target inside the front lies between two of its points")


def summary(readings: Sequence[Reading | None]) -> Summary | None:
    """Over the rounds; None where a round did not reach the target."""
    reached = [each for each in readings if each is not None]
    if not reached or len(reached) < len(readings):
        return None
    values = [each.value for each in reached]
    return Summary(median(values), min(values), max(values), any(each.above for each in reached))


def ratio(
    ours: Mapping[Turn, Reading | None], theirs: Mapping[Turn, Reading | None]
) -> Summary | None:
    """Ours over theirs in each turn both took part in, then summed up; None where either
    falls short in one of them, or they never met."""
    return summary(
        [
            Reading(a.value / b.value, a.above or b.above) if a and b else None
            for a, b in ((ours[turn], theirs[turn]) for turn in ours if turn in theirs)
        ]
    )


def worth(points: Mapping[str, Point], targets: Sequence[float]) -> list[str]:
    """Of settings tried once and briefly, those that careful readings should repeat.

    Kept is what may lie on the front, speeds being known to `SCOUT_SLACK` only, from the
    last setting well below the lowest target to the first well above the highest.
    """
    near = {
        name: recall
        for name, (recall, qps) in points.items()
        if all(qps * SCOUT_SLACK >= fast for high, fast in points.values() if high >= recall)
    }
    low = max((r for r in near.values() if r < min(targets) - BELOW), default=0.0)
    high = min((r for r in near.values() if r > 1 - (1 - max(targets)) * ABOVE), default=1.0)
    return [name for name, recall in near.items() if low <= recall <= high]
