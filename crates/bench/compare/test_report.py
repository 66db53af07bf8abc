"""Tests of the page, of the record it is made from, and of the whole program."""

from pathlib import Path

import numpy as np
import pytest

from . import __main__ as program
from . import record, report
from .adapters import VECTORS
from .curves import Reading
from .errors import BenchError
from .fakes import Dying, Fake
from .record import Record, Row


def row(library: str, *speeds: float) -> Row:
    """A speed for each wave, 0 for none; it falls with recall, and doubles in round 2."""
    build = {"wall_s": 2.0, "cpu_s": 3.0, "grown_bytes": 900.4, "own_bytes": None, "kernels": ""}
    result = Row(library, release=f"{library} 1.0", builds=[build])
    cpu_qps = 3.0 if library.startswith("lanewise") else 1.0
    for ef, recall in ((10, 0.92), (50, 0.95), (100, 0.98)):
        for wave, speed in enumerate(speeds):
            for turn in (0, 1) if speed else ():
                reading = {
                    "recall": recall,
                    "qps": speed / ef * (1 + turn),
                    "cpu_qps": cpu_qps / ef,
                }
                result.add(1, f"ef {ef}", {"wave": wave, "round": turn, **reading})
    result.latency = [{"p50_us": 10.0, "p99_us": 20.0}]
    result.latency_label = "ef 50"
    return result


def sample() -> Record:
    """Others left the machine to the second wave: there all is four times as fast."""
    rows = [
        row("lanewise-f32", 3000, 12000),
        row("lanewise-i8", 6000, 24000),
        row("hnswlib", 1500),
        row("usearch-f32", 0, 2000),
        Row("svs-f32", "OSError: a | b\nc"),
        Row("scann-soar", "needs inner products", applicable=False),
    ]
    data = {
        "about": "made up",
        "base_len": 50,
        "dim": 16,
        "dtype": "uint8",
        "queries_len": 5,
        "metric": "l2",
        "lid": 9.87,
    }
    plan = {"threads": [1], "k": 10, "rounds": 2, "builds": 1, "memory_bytes": 1 << 30}
    waves = [(["lanewise-f32", "hnswlib"], 1 << 29), (["lanewise-f32", "usearch-f32"], 1 << 28)]
    return Record("some", data, {"cpu": "x"}, plan, [1.0, 2.0, 3.0], waves, rows)


def test_a_lucky_reading_of_a_poor_setting_does_not_count() -> None:
    unlucky = Row("some")
    for turn, lucky in enumerate((50.0, 400.0, 50.0)):
        for label, recall, qps in (("a", 0.95, 100.0), ("b", 0.96, lucky), ("c", 0.94, 60.0)):
            reading = {"wave": 0, "round": turn, "recall": recall, "qps": qps, "cpu_qps": qps}
            unlucky.add(1, label, reading)
    assert unlucky.speeds(1, 0.95) == {(0, turn): Reading(100.0) for turn in range(3)}
    assert unlucky.speeds(1, 0.96)[0, 1] == Reading(pytest.approx(400.0))
    assert unlucky.speeds(1, 0.97)[0, 1] is None


class TestPage:
    def test_best_meets_best(self) -> None:
        lines = report.page([sample()], {"some": "a.png"}).splitlines()
        # usearch looks faster, but ran in the better wave, where ours was faster still.
        assert (
            "| some | 1 | 0.95 | lanewise-i8 | 360 | hnswlib | 45 | **4.00 (4.00 to 4.00)** "
            "| 3.00 (3.00 to 3.00) |" in lines
        )
        assert "| some | 1 | 0.99 | — | — | — | — | — | — |" in lines
        assert "![recall and speed of some](a.png)" in lines

    def test_tables_hold_ratios_marks_and_reasons(self) -> None:
        lines = report.page([sample()], {}).splitlines()
        assert "| lanewise-f32 | ≥900 | 180 | — | 8.00 | 0.9800 |  |  |  |" in lines
        assert "| hnswlib | ≥225 | 45 | — | 2.00 | 0.9800 | 4.00* | 4.00 | — |" in lines
        assert "| svs-f32 | not run: OSError: a \\| b c |  |  |  |  |  |  |  |" in lines
        assert "- not for these data: scann-soar needs inner products" in lines
        assert "| lanewise-f32 | 2.0 | 3.0 | 900 | — | 10 | 20 | 0.950 (ef 50) | — |" in lines
        assert not [line for line in lines if line.startswith(("![", "| scann-soar"))]

    def test_a_record_comes_back_as_it_was(self, tmp_path: Path) -> None:
        sample().save(tmp_path / "some.json")
        again = record.load(tmp_path / "some.json")
        assert report.page([again], {}) == report.page([sample()], {})
        assert again.rows == sample().rows
        (tmp_path / "some.json").write_text('{"rows": [{"unknown": 1}]}')
        with pytest.raises(BenchError, match="remove it"):
            record.load(tmp_path / "some.json")


class TestProgram:
    def arguments(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        fakes = {"lanewise-fake": Fake, "fake": Fake, "dying": Dying}
        for name, make in fakes.items():
            monkeypatch.setitem(VECTORS, name, make)
        monkeypatch.setattr(program, "ALL", list(fakes))
        rng = np.random.default_rng(5)
        rows = rng.random((300, 8), np.float32)
        np.savez(folder / "a.npz", train=rows[:250], test=rows[250:])
        return [
            f"--data={folder / 'a.npz'}",
            f"--cache={folder / 'cache'}",
            f"--out={folder / 'out'}",
            f"--libraries={','.join(fakes)}",
            "--quick",
            "--threads=1",
        ]

    def test_one_command_makes_the_page_and_the_next_resumes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = self.arguments(tmp_path, monkeypatch)
        assert program.main(arguments) == 0
        text = (tmp_path / "out/compare.md").read_text()
        assert "| given | 1 | 0.95 | lanewise-fake |" in text
        assert "| dying | not run: its process ended with status 3: not supported" in text
        assert (tmp_path / "out/compare-given.png").stat().st_size > 10_000

        monkeypatch.setattr(program.driver, "run", None)  # whatever is measured fails
        assert program.main([*arguments, "--resume", f"--page={tmp_path / 'page.md'}"]) == 0
        again = (tmp_path / "page.md").read_text()
        assert again == text.replace("compare-given.png", "page-given.png")
        assert "taken from" in capsys.readouterr().err

    def test_a_run_without_any_result_fails_and_says_where_to_look(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = self.arguments(tmp_path, monkeypatch)
        assert program.main([*arguments, "--libraries=dying"]) == 1
        assert "compare.md says why" in capsys.readouterr().err

    def test_unknown_names_are_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        for argument in ("--libraries=nobody", "--datasets=nothing"):
            with pytest.raises(SystemExit):
                program.main([argument])
            assert "unknown 'no" in capsys.readouterr().err
