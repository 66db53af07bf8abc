"""Who takes turns in a case, and the memory that they work on."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from . import expected
from .cases import TILE_QUERIES, TILE_ROWS, Case, Form
from .memory import Piece, l2_bytes
from .native import Job, Shape

L1_BYTES = 16 << 10
# Read by one timing from memory.
WINDOW_BYTES = 8 << 20
IDS_MAX = 16 << 10
OUT_BYTES = 8 << 20
QUERIES_BYTES = 1 << 20


@dataclass
class Prepared:
    """A job ready to be timed. `result`: numpy type of what it writes. `keep`: what must outlive
    it. `move`: tells a library that keeps the rows' address that they start elsewhere now."""

    job: Job
    result: str
    meaning: Callable[[numpy.ndarray], numpy.ndarray] = lambda values: values
    row_type: str = ""
    move: Callable[[int], None] | None = None
    own_rows: bool = False
    keep: tuple = ()


@dataclass(frozen=True)
class Contender:
    """One implementation for one case. `prepare` gives None where it has nothing for the case."""

    library: str
    variant: str
    prepare: Callable[["Workplace"], Prepared | None]


class Memory:
    """What all cases share: queries, rows for the caches, the large matrix, results."""

    def __init__(self, matrix_bytes: int) -> None:
        self.queries = Piece(QUERIES_BYTES, 1)
        self.small = Piece(max(4 << 20, l2_bytes()), 2)
        self.matrix = Piece(matrix_bytes, 3)
        self.out = numpy.zeros(OUT_BYTES, numpy.uint8)
        self.random = numpy.random.default_rng(4)
        self.cursor = 0


class Workplace:
    """The part of the memory that a case works on; every timing from memory moves it on."""

    def __init__(self, memory: Memory, case: Case) -> None:
        self.memory, self.case = memory, case
        self.from_memory = case.form in (Form.ROWS_MEMORY, Form.IDS)
        self.piece = memory.matrix if self.from_memory else memory.small
        fit = OUT_BYTES // 8 // case.results_per_row
        self.count = {
            Form.ONE: max(1, L1_BYTES // case.row_bytes),
            Form.ROWS_L2: min(fit, l2_bytes() // case.row_bytes),
            Form.ROWS_MEMORY: min(fit, WINDOW_BYTES // case.row_bytes),
            Form.IDS: min(IDS_MAX, WINDOW_BYTES // case.row_bytes),
            Form.TILE: TILE_ROWS,
        }[case.form]
        self.queries = TILE_QUERIES if case.form == Form.TILE else 1
        self.query = memory.queries
        if case.type == "u8u4":
            # Its queries hold numbers of four bits.
            self.query = Piece(QUERIES_BYTES, 1)
            self.query.bytes &= 15
        self.rows_in_piece = self.piece.size // case.row_bytes
        self.first = 0
        if case.form == Form.IDS:
            ids = memory.random.integers(0, self.rows_in_piece, 1 << 20, numpy.uint32)
            self.ids, self.ids64 = ids, ids.astype(numpy.int64)

    @property
    def results(self) -> int:
        """Distances that one pass gives."""
        return self.count * self.queries * self.case.results_per_row

    def job(self, shape: Shape, function: int | None) -> Job:
        """A job over this place."""
        job = Job(shape=shape, fn=function, q=self.query.address, base=self.piece.address)
        job.q_stride, job.stride = self.case.query_bytes, self.case.row_bytes
        job.queries, job.count, job.n = self.queries, self.count, self.case.n
        job.out = self.memory.out.ctypes.data
        return job

    def norms(self) -> tuple[int, int]:
        """Address of the rows' squared lengths, and the query's squared length."""
        if not hasattr(self, "_norms"):
            # Of the whole matrix they would take minutes: their values do not change the time.
            # Those of the rows in the caches are right, and checked.
            kind = numpy.int8 if self.case.type == "i8" else numpy.uint8
            self._norms = numpy.zeros(self.rows_in_piece, numpy.int32)
            if not self.from_memory:
                shape = (self.rows_in_piece, self.case.row_bytes)
                rows = self.piece.bytes[: shape[0] * shape[1]].view(kind).reshape(shape)
                self._norms[:] = numpy.square(rows.astype(numpy.int32)).sum(1)
            query = self.query.bytes[: self.case.query_bytes].view(kind).astype(numpy.int32)
            self._query_norm = int(numpy.square(query).sum())
        return self._norms.ctypes.data, self._query_norm

    def advance(self, prepared: Prepared) -> None:
        """Points the job at rows that no cache holds, if its case is one from memory."""
        job, memory = prepared.job, self.memory
        if not self.from_memory or prepared.own_rows:
            return
        if self.case.form == Form.IDS:
            memory.cursor = (memory.cursor + self.count) % (len(self.ids) - self.count)
            job.ids = self.ids.ctypes.data + 4 * memory.cursor
            job.ids64 = self.ids64.ctypes.data + 8 * memory.cursor
            return
        rows = self.rows_in_piece - self.count
        # Wherever the case before stopped, in bytes; on a line, as rows of whole lines stay.
        self.first = (memory.cursor + WINDOW_BYTES) // self.case.row_bytes % rows
        memory.cursor = self.first * self.case.row_bytes
        memory.cursor += -memory.cursor % 64 if self.case.row_bytes % 64 else 0
        job.base = self.piece.address + memory.cursor
        if job.norms:
            job.norms = self._norms.ctypes.data
        if prepared.move:
            prepared.move(memory.cursor)

    def check(self, prepared: Prepared) -> float:
        """The largest difference of the last pass's first results from what they must be,
        relative to what rounding may be."""
        case, job = self.case, prepared.job
        if prepared.job.shape in (Shape.ROWS_NORMS, Shape.IDS_NORMS) and self.from_memory:
            return 0.0
        some = min(4, self.count)
        query = self.query.bytes[: case.query_bytes]
        start = (job.base if not prepared.own_rows else self.piece.address) - self.piece.address
        numbers = self.numbers(job, some)
        rows = [
            self.piece.bytes[start + i * case.row_bytes : start + (i + 1) * case.row_bytes]
            for i in numbers
        ]
        if case.is_scan:
            wanted, size = expected.scan(query, rows[0]), numpy.ones(32)
        else:
            pairs = [expected.pair(case.op, prepared.row_type or case.type, query, r) for r in rows]
            wanted, size = map(numpy.array, zip(*pairs, strict=True))
        got = self.memory.out.view(prepared.result)[: len(wanted)].astype(float)
        return float(numpy.max(numpy.abs(prepared.meaning(got) - wanted) / size))

    def numbers(self, job: Job, some: int) -> list[int]:
        """Row numbers of the pass's first results."""
        if self.case.form != Form.IDS:
            return list(range(some))
        return list((ctypes.c_uint32 * some).from_address(job.ids))
