"""What every library's adapter does, and the parameters all share.

An adapter times and judges nothing. Its library is imported when it is made, inside the
worker that runs it: an import that fails makes that one row "not run" with the reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

Setting = dict[str, Any]
"""Named values that a search takes, such as {"nprobe": 8, "k_factor": 4}."""

K = 10
"""How many neighbours are asked for."""

EFS = (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640, 900)
NPROBES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
OVERSAMPLES = (2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a build, the same for every library that has them.

    A graph has up to `m` links in upper layers and 2 m in the lowest (`degree`); `alpha`
    is Vamana's slack; `lists` of an inverted file is the power of 2 nearest to 4 √n.
    """

    m: int = 16
    ef_construction: int = 200
    alpha: float = 1.2

    @property
    def degree(self) -> int:
        return 2 * self.m

    @staticmethod
    def lists(base_len: int) -> int:
        # faiss asks for 39 vectors a list; few vectors get fewer lists.
        return 1 << max(round(np.log2(4 * base_len**0.5)) if base_len > 1 << 14 else 6, 0)


class NotApplicable(Exception):
    """This data cannot be given to this index; the text says why."""


class Adapter(Protocol):
    """One index of one library. Made in its own process, used by one thread."""

    def release(self) -> str:
        """The package and its version."""

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        """`rows` (n, columns) in the form the library takes; outside every clock."""

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        """A new index over prepared rows, which it copies; row i has id i."""

    def settings(self) -> list[Setting]:
        """What a search may be asked with, for the driver to sweep."""

    def configure(self, setting: Setting, threads: int) -> None:
        """What the next searches use. Apart, so that single queries do not pay for it."""

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids (m, k) for prepared queries (m, columns), m = 1 too."""

    def own_bytes(self) -> float | None:
        """Bytes per vector as the library states them; None where it does not."""

    def kernels(self) -> str:
        """The instruction set that the library says it uses; empty where it does not."""


def sweep(**values: Iterable[Any]) -> list[Setting]:
    """Every combination of the named values."""
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def label(setting: Setting) -> str:
    """A setting as readers see it: `nprobe 8, k_factor 4`."""
    return ", ".join(f"{name} {value}" for name, value in setting.items()) or "as it is"


def floats(rows: np.ndarray) -> np.ndarray:
    """Rows as contiguous, writable float32. (VSAG ends the process for a read-only array.)"""
    return np.require(rows, np.float32, ["C", "W"])


def bytes_u8(rows: np.ndarray) -> np.ndarray:
    """Unsigned 8-bit data as they are."""
    if rows.dtype != np.uint8:
        raise NotApplicable(f"holds unsigned 8-bit data exactly, this data is {rows.dtype}")
    return np.ascontiguousarray(rows)


def shifted(rows: np.ndarray) -> np.ndarray:
    """8-bit data as i8; shifting unsigned values by 128 leaves every L2 distance as it was."""
    if rows.dtype == np.uint8:
        return (rows ^ 0x80).view(np.int8)
    if rows.dtype == np.int8:
        return np.asarray(rows)
    raise NotApplicable(f"holds 8-bit data exactly, this data is {rows.dtype}")
