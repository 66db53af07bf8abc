"""Tests of what both programs share."""

import signal
import sys
from pathlib import Path

import pytest

from .errors import BenchError
from .program import count, list_of, make_folder, run


@pytest.fixture(autouse=True)
def _restore_handler():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def raising(error: BaseException):
    def work() -> None:
        raise error

    return work


def test_endings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("some", lambda: None) == 0
    assert run("some", raising(BenchError("what and how"))) == 1
    assert run("some", raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "some: what and how\n\nsome: interrupted\n"


def test_a_terminated_program_unwinds() -> None:
    unwound = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append(True)

    with pytest.raises(SystemExit, match="143"):
        run("some", work)
    assert unwound


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match=r"--out .*file: cannot write there \(File exists\)"):
        make_folder(tmp_path / "file")
    if sys.platform == "linux":
        with pytest.raises(BenchError, match="--out /proc/self: cannot write there"):
            make_folder(Path("/proc/self"))


def test_arguments() -> None:
    assert list_of(count)("3,1,3") == [3, 1]
    for wrong in ("0", "-1", "", "x", "²", "1.5", str(1 << 31)):
        with pytest.raises(Exception, match="not a whole number above zero"):
            count(wrong)
