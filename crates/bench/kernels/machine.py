"""What this machine reaches: bytes a second of each cache, and of memory."""

from dataclasses import dataclass
from statistics import median

from .contender import Memory
from .limits import loads_of
from .memory import cache_bytes
from .native import Harness, Job, Shape

ROW = 4096
RANDOM_ROW = 768


@dataclass(frozen=True)
class Level:
    """A cache or the memory: how much was read over and over, and at what rate."""

    name: str
    bytes_read: int
    gb_per_second: float


def levels(harness: Harness, features: int, memory: Memory, rounds: int) -> list[Level]:
    """Loads of one thread, best kind of load, medians over the rounds."""
    loads, l3 = loads_of(harness, features), cache_bytes(3)
    sizes = {
        "L1": (cache_bytes(1) or 32 << 10) // 2,
        "L2": (cache_bytes(2) or 1 << 20) // 2,
        # Half of a large L3 is never one core's own on a shared machine.
        "L3": min(l3 // 2, 32 << 20),
        "memory": memory.matrix.size,
    }
    jobs = {}
    for name, size in sizes.items():
        if size:
            piece = memory.matrix if size > memory.small.size else memory.small
            job = Job(shape=Shape.ROWS, fn=loads.rows, q=memory.queries.address)
            job.base, job.stride, job.count, job.queries = piece.address, ROW, size // ROW, 1
            jobs[name] = (job, job.count * ROW)
    ids = memory.random.integers(0, memory.matrix.size // RANDOM_ROW, 1 << 16, "uint32")
    job = Job(shape=Shape.IDS, fn=loads.ids, base=memory.matrix.address, stride=RANDOM_ROW)
    job.count, job.per_call, job.ids, job.n = len(ids), len(ids), ids.ctypes.data, RANDOM_ROW
    jobs[f"memory, random rows of {RANDOM_ROW} B"] = (job, len(ids) * RANDOM_ROW)
    rates: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (job, size) in jobs.items():
            passes = max(1, (8 << 20) // size)
            harness.time(job, 1 if size <= 64 << 20 and job.shape == Shape.ROWS else 0)
            rates[name].append(size * passes / harness.time(job, passes))
    return [Level(name, jobs[name][1], median(rates[name])) for name in jobs]
