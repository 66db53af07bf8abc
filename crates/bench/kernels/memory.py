"""The vectors: a small piece that stays in the caches and a matrix that no cache holds."""

import mmap
import os
from pathlib import Path

import numpy
from compare.errors import BenchError

HUGE_PAGE = 2 << 20
L2_DEFAULT = 1 << 20
# The readings from the L3 and from memory go over up to half of it.
LEAST = 64 << 20
# A kernel of ours reads no byte outside its operands, but a peer might.
SLACK = 4096
FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Piece:
    """Bytes of our own on huge pages. Any two of them are a number near 1 or smaller, of either
    sign, read as f16 or bf16, and any four are one read as f32: no NaN, nothing subnormal."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        try:
            self._map = mmap.mmap(-1, size + SLACK + HUGE_PAGE, flags=FLAGS)
        except OSError as error:
            raise BenchError(f"no {size >> 20} MiB ({error}): ask for less by --memory") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        whole = numpy.frombuffer(self._map, numpy.uint8)
        start = -whole.ctypes.data % HUGE_PAGE
        self.bytes = whole[start : start + size + SLACK]
        self.address = self.bytes.ctypes.data
        random = numpy.random.default_rng(seed)
        some = random.integers(0, 256, HUGE_PAGE, numpy.uint8)
        high = some[1::2]
        high[:] = (high & 0x83) | 0x3C
        for at in range(0, len(self.bytes), HUGE_PAGE):
            self.bytes[at : at + HUGE_PAGE] = some[: len(self.bytes) - at]


def default_bytes() -> int:
    """Four times the last cache or 1 GiB, whichever is more, within a third of what is free (but
    not less than can be measured with)."""
    wanted = max(1 << 30, 4 * cache_bytes(3))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(LEAST, min(wanted, free // 3) // HUGE_PAGE * HUGE_PAGE)


def cache_bytes(level: int) -> int:
    """Size of the first CPU's data cache of that level; 0 if the system does not say."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (folder / "type").read_text().strip()
            if int((folder / "level").read_text()) == level and kind != "Instruction":
                text = (folder / "size").read_text().strip()
                return int(text[:-1]) << {"K": 10, "M": 20}[text[-1]]
        except (OSError, ValueError, KeyError):
            continue
    return 0


def l2_bytes() -> int:
    """Half of the L2: what is measured there leaves room for the rest."""
    return (cache_bytes(2) or L2_DEFAULT) // 2
