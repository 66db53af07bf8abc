"""Tests of fronts, interpolation, ratios, and which settings are worth measuring."""

import math

import pytest

from . import curves
from .curves import Reading


def turns(*readings: Reading | None) -> dict[curves.Turn, Reading | None]:
    return {(0, number): reading for number, reading in enumerate(readings)}


class TestCurves:
    def test_pareto_drops_what_another_point_beats(self) -> None:
        points = [(0.9, 100.0), (0.95, 120.0), (0.99, 50.0), (0.99, 40.0), (0.97, 45.0)]
        assert curves.pareto(points) == [(0.95, 120.0), (0.99, 50.0)]
        assert curves.pareto([]) == []

    def test_interpolation_is_geometric_in_speed(self) -> None:
        points = [(0.90, 10_000.0), (0.99, 100.0)]
        assert curves.speed_at(points, 0.945).value == pytest.approx(1000)
        share = (0.96 - 0.90) / 0.09
        expected = math.exp(math.log(10_000) * (1 - share) + math.log(100) * share)
        assert curves.speed_at(points, 0.96).value == pytest.approx(expected)

    def test_interpolation_meets_the_points_and_its_ends(self) -> None:
        points = [(0.90, 30.0), (0.95, 20.0), (0.99, 10.0)]
        assert curves.speed_at(points, 0.95) == Reading(pytest.approx(20.0))
        assert curves.speed_at(points, 0.99) == Reading(pytest.approx(10.0))
        assert curves.speed_at(points, 0.90) == Reading(30.0, above=False)
        assert curves.speed_at(points, 0.80) == Reading(30.0, above=True)
        assert curves.speed_at(points, 0.991) is None
        assert curves.speed_at([], 0.9) is None

    def test_ratio_is_the_median_of_the_rounds_ratios(self) -> None:
        ours = turns(Reading(20.0), Reading(60.0), Reading(10.0))
        theirs = turns(Reading(10.0), Reading(20.0), Reading(10.0, above=True))
        # The ratio of the medians, 20 / 10, is 2 as well; these rounds tell them apart.
        assert curves.ratio(ours, theirs) == curves.Summary(2.0, 1.0, 3.0, above=True)
        skewed = curves.ratio(ours, turns(Reading(10.0), Reading(20.0), Reading(2.0)))
        assert skewed == curves.Summary(3.0, 2.0, 5.0)

    def test_a_round_that_falls_short_leaves_no_figure(self) -> None:
        assert curves.summary([Reading(1.0), None]) is None
        assert curves.ratio(turns(Reading(1.0)), turns(None)) is None

    def test_only_turns_together_make_a_ratio(self) -> None:
        ours = {(0, 0): Reading(8.0), (1, 0): Reading(4.0)}
        assert curves.ratio(ours, {(1, 0): Reading(2.0)}) == curves.Summary(2.0, 2.0, 2.0)
        assert curves.ratio(ours, {(2, 0): Reading(2.0)}) is None

    def test_worth_keeps_the_front_around_the_targets(self) -> None:
        points = {
            "far below": (0.50, 900.0),
            "below": (0.80, 800.0),
            "below too": (0.85, 700.0),
            "near": (0.90, 600.0),
            "noisy": (0.895, 600.0 / 1.2),
            "beaten": (0.91, 100.0),
            "high": (0.99, 300.0),
            "above": (0.996, 200.0),
            "far above": (0.999, 100.0),
        }
        kept = curves.worth(points, (0.90, 0.95, 0.99))
        assert kept == ["below too", "near", "noisy", "high", "above"]
        # What never gets there is measured at its best, and what begins above at its first.
        assert curves.worth({"a": (0.3, 9.0), "b": (0.5, 8.0)}, (0.9,)) == ["b"]
        assert curves.worth({"a": (0.995, 9.0), "b": (1.0, 8.0)}, (0.9,)) == ["a"]
