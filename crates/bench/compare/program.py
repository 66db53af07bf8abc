"""What the programs `compare` and `kernels` share: how they end, and where they write."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import BenchError


def run(name: str, work: Callable[[], None]) -> int:
    """Does `work`; the answer is the exit status. What the user can mend is one line on stderr."""
    # A terminated program unwinds like an interrupted one, and ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        work()
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return 130
    return 0


def make_folder(path: Path) -> None:
    """Makes the folder for the records, or says at once that nothing could be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise BenchError(f"--out {path}: cannot write there ({error.strerror})") from error


def written(path: Path) -> Path:
    """`path`, once the user has been told."""
    print(f"writing {path}", file=sys.stderr)
    return path


def count(text: str) -> int:
    """An argument that counts something."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def list_of(item: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """An argument that lists items with commas between, each told once."""
    return lambda text: list(dict.fromkeys(item(each) for each in text.split(",")))
