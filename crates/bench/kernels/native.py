"""The harness from Python: compiled by the system's C compiler, called through ctypes."""

import ctypes
import os
import subprocess
from ctypes import c_char_p, c_double, c_int32, c_size_t, c_uint32, c_void_p
from enum import IntEnum
from pathlib import Path

from compare.errors import BenchError

HERE = Path(__file__).parent
KERNELS_C = HERE.parents[1] / "kernels" / "c"
SOURCES = (HERE / "harness.c", KERNELS_C / "limits" / "loads.c", KERNELS_C / "limits" / "steps.c")


class Shape(IntEnum):
    """How the harness calls `fn`: `enum shape` of harness.c, in its order."""

    PAIR_I32 = 0
    PAIR_F32 = 1
    PAIR_OUT = 2
    PAIR_SELF = 3
    ROWS = 4
    IDS = 5
    TILE = 6
    SCAN = 7
    PAIR_NORMS = 8
    ROWS_NORMS = 9
    IDS_NORMS = 10
    FAISS_NY = 11
    FAISS_BY_IDX = 12
    FAISS_HAMMINGS = 13
    NUMKONG_PACKED = 14
    SGEMM = 15


class Job(ctypes.Structure):
    """`struct job` of harness.c."""

    _fields_ = (
        ("shape", c_uint32),
        ("result_bytes", c_uint32),
        ("fn", c_void_p),
        ("self", c_void_p),
        ("q", c_void_p),
        ("q_stride", c_size_t),
        ("queries", c_size_t),
        ("base", c_void_p),
        ("stride", c_size_t),
        ("count", c_size_t),
        ("n", c_size_t),
        ("ids", c_void_p),
        ("ids64", c_void_p),
        ("per_call", c_size_t),
        ("norms", c_void_p),
        ("query_norm", c_int32),
        ("out", c_void_p),
    )


class Loads(ctypes.Structure):
    """`struct lw_limit_loads`."""

    _fields_ = (
        ("isa", c_char_p),
        ("needs", c_uint32),
        ("one", c_void_p),
        ("rows", c_void_p),
        ("ids", c_void_p),
    )


class Step(ctypes.Structure):
    """`struct lw_limit_step`."""

    _fields_ = (
        ("op", c_char_p),
        ("type", c_char_p),
        ("isa", c_char_p),
        ("needs", c_uint32),
        ("what", c_char_p),
        ("run", c_void_p),
    )


class Harness:
    """The compiled harness."""

    def __init__(self, folder: Path) -> None:
        path = folder / "harness.so"
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{KERNELS_C}"]
        command = [compiler, *flags, *map(str, SOURCES), "-o", str(path)]
        folder.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise BenchError(
                f"no C compiler ({error}): install gcc or clang, or name one in CC"
            ) from error
        if done.returncode:
            raise BenchError(f"{compiler} could not compile the harness:\n{done.stderr}")
        library = ctypes.CDLL(str(path))
        self._time = library.bench_time
        self._time.restype, self._time.argtypes = c_double, (ctypes.POINTER(Job), c_size_t)
        library.bench_named.restype = c_uint32
        self.named: int = library.bench_named()
        self.loads: list[Loads] = table(library, "lw_limit_loads", Loads)
        self.steps: list[Step] = table(library, "lw_limit_steps", Step)

    def time(self, job: Job, passes: int = 1) -> float:
        """Nanoseconds that `passes` passes over the job took."""
        return self._time(ctypes.byref(job), passes)


def table(library: ctypes.CDLL, function: str, entry: type) -> list:
    """The array that `const ENTRY *function(size_t *count)` gives."""
    call = getattr(library, function)
    call.restype, call.argtypes = ctypes.POINTER(entry), (ctypes.POINTER(c_size_t),)
    count = c_size_t()
    first = call(ctypes.byref(count))
    return [first[i] for i in range(count.value)]
