"""Lucene's own figures (Panama): java/jmh measures them, and writes a file.

Comma-separated, with the header `kernel,dims,way,ns`: our name of the kernel (`dot_i8`), `lucene`
or how our library was called from Java (`heap`, `offHeap`, `copyIn`), nanoseconds a call.
"""

import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compare.errors import BenchError

COLUMNS = ("kernel", "dims", "way", "ns")


@dataclass(frozen=True)
class Figure:
    kernel: str
    dims: int
    way: str
    ns: float


def measure(script: Path, libraries: Path, path: Path, quick: bool) -> list[Figure]:
    """Lets `script` measure, with the libraries of a folder, and keeps the figures at `path`."""
    print("measuring Lucene …", file=sys.stderr)
    command = ["sh", script, "bench", "--csv", path.resolve(), *(["--quick"] if quick else [])]
    environment = os.environ | {"KERNELS": str(libraries.absolute())}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode == 77:
        raise BenchError(done.stdout.strip())
    if done.returncode:
        raise BenchError(f"{script} bench failed with status {done.returncode}")
    return read(path)


def read(path: Path) -> list[Figure]:
    """The figures of the file at `path`."""
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise BenchError(f"{path}: the first line must be {','.join(COLUMNS)}")
            figures = [
                Figure(each["kernel"], int(each["dims"]), each["way"], float(each["ns"]))
                for each in rows
            ]
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot read it ({error})") from error
    except (TypeError, ValueError) as error:
        raise BenchError(f"{path}: a line is damaged ({error})") from error
    if not all(figure.ns > 0 for figure in figures):
        raise BenchError(f"{path}: nanoseconds must be above zero")
    return figures
