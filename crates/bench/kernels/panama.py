"""Lucene's own figures (Panama), from the file that the Java benchmark writes.

Comma-separated, with the header `kernel,dims,way,ns`: our name of the kernel (`dot_i8`), `lucene`
or how our library was called from Java (`heap`, `offHeap`, `copyIn`), nanoseconds a call.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from .errors import BenchError

COLUMNS = ("kernel", "dims", "way", "ns")


@dataclass(frozen=True)
class Figure:
    kernel: str
    dims: int
    way: str
    ns: float


def read(path: Path) -> list[Figure]:
    """The figures of the file at `path`."""
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise BenchError(f"--panama {path}: the first line must be {','.join(COLUMNS)}")
            figures = [
                Figure(each["kernel"], int(each["dims"]), each["way"], float(each["ns"]))
                for each in rows
            ]
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"--panama {path}: cannot read it ({error})") from error
    except (TypeError, ValueError) as error:
        raise BenchError(f"--panama {path}: a line is damaged ({error})") from error
    if not all(figure.ns > 0 for figure in figures):
        raise BenchError(f"--panama {path}: nanoseconds must be above zero")
    return figures
