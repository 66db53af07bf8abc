"""Tests of workers, waves and rounds, with libraries that work and that fail."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from . import curves, driver
from .adapters import Make
from .adapters.protocol import Parameters
from .curves import Point
from .dataset import load, store
from .driver import Plan, Results
from .fakes import Dying, Failing, Fake, Few, Hanging, Stranger, Unknown
from .recall import nearest
from .worker import Inapplicable, Worker, WorkerFailed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def write(scratch: Path) -> tuple[str, str]:
        rng = np.random.default_rng(5)
        np.save(scratch / "base.npy", rng.random((300, 8), np.float32))
        np.save(scratch / "queries.npy", rng.random((64, 8), np.float32))
        return "l2", "random"

    return store(tmp_path / "data", write)


def results_of(folder: Path, libraries: Mapping[str, Make], memory_bytes: int = 1 << 40) -> Results:
    plan = Plan(
        threads=[1], rounds=2, builds=1, seconds=0, memory_bytes=memory_bytes, build_seconds_max=5
    )
    data = load(folder)
    return driver.run(plan, libraries, folder, nearest(data, 20), data, folder.parent)


class TestWorker:
    def test_a_process_that_is_killed_is_an_answer_not_a_hang(self, folder: Path) -> None:
        worker = Worker(Fake, folder, folder / "log")
        worker._process.kill()
        with pytest.raises(WorkerFailed, match=r"ended with status -9.*memory"):
            worker.ask("release", seconds_max=30)
        worker.end()
        assert not worker._process.is_alive()

    def test_data_for_others_are_told_apart(self, folder: Path) -> None:
        worker = Worker(Stranger, folder, folder / "log")
        with pytest.raises(Inapplicable, match="takes other data"):
            worker.ask("release", seconds_max=30)
        worker.end()

    def test_brief_searches_take_the_first_queries(self, folder: Path) -> None:
        worker = Worker(Fake, folder, folder / "log")
        data = load(folder)
        for queries_len, expected in ((5, 5), (None, len(data.queries))):
            worker.ask(
                "build",
                Parameters(),
                1,
                seconds_max=30,
            )
            reading = worker.ask("search", 10, {"share": 1.0}, 1, 0.0, queries_len, seconds_max=30)
            assert np.array_equal(reading["ids"], nearest(data, 10)[:expected])
        assert worker.held_bytes() > 1 << 20
        worker.end()


@pytest.fixture
def _speeds_by_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worth measuring must not hang on how fast a fake was this time."""

    def worth(points: Mapping[str, Point], targets: Sequence[float]) -> list[str]:
        told = {label: (recall, 1 / recall) for label, (recall, _) in points.items()}
        return curves.worth(told, targets)

    monkeypatch.setattr(driver, "worth", worth)


@pytest.mark.usefixtures("_speeds_by_recall")
class TestDriver:
    def test_each_failure_costs_its_own_row_and_has_its_reason(self, folder: Path) -> None:
        results = results_of(
            folder,
            {
                "lanewise-a": Fake,
                "lanewise-b": Unknown,
                "peer": Fake,
                "few": Few,
                "stranger": Stranger,
                "dying": Dying,
                "hanging": Hanging,
                "failing": Failing,
            },
        )
        reasons = {row.library: row.reason for row in results.rows}
        assert reasons == {
            "lanewise-a": None,
            "lanewise-b": "TypeError: got an unexpected keyword argument 'code'",
            "peer": None,
            "few": None,
            "stranger": "takes other data",
            "dying": "its process ended with status 3: not supported on this machine",
            "hanging": "build: no answer within 5 s, so it was ended",
            "failing": "RuntimeError: one is none",
        }
        assert [row.library for row in results.rows if not row.applicable] == ["stranger"]
        row = results.rows[2]
        assert row.release == "fake 1.0"
        # 0.5 is too low to be worth measuring.
        assert list(row.searches[1]) == ["share 0.8", "share 0.92", "share 1.0"]
        for label, readings in row.searches[1].items():
            assert [(each["wave"], each["round"]) for each in readings] == [(0, 0), (0, 1)]
            assert row.recall(label) == pytest.approx(float(label.split()[1]), abs=0.05)
        assert row.recall("share 1.0") == 1
        assert {label: len(each) for label, each in results.rows[3].searches[1].items()} == {
            "share 0.92": 2,
            "share 1.0": 2,
        }
        assert row.latency_label == "share 0.92"
        assert len(row.latency) == 2
        assert results.waves[0][0] == ["lanewise-a", "peer", "few"]

    def test_what_does_not_fit_waits_for_the_next_wave_and_meets_ours_there(
        self, folder: Path
    ) -> None:
        libraries = {"peer-a": Fake, "lanewise-a": Fake, "peer-b": Fake}
        results = results_of(folder, libraries, memory_bytes=1)
        assert [names for names, _ in results.waves] == [
            ["lanewise-a", "peer-a"],
            ["lanewise-a", "peer-b"],
        ]
        turns = [sorted(row.speeds(1, 0.95)) for row in results.rows]
        assert turns == [
            [(0, 0), (0, 1)],
            [(0, 0), (0, 1), (1, 0), (1, 1)],
            [(1, 0), (1, 1)],
        ]

    def test_ours_that_do_not_fit_say_so(self, folder: Path) -> None:
        results = results_of(folder, {"lanewise-a": Fake, "lanewise-b": Fake}, memory_bytes=1)
        assert "--libraries" in str(results.rows[1].reason)
        assert results.rows[0].reason is None
