"""Our kernels, out of the shared library: every variant that this CPU can run."""

import ctypes
from ctypes import c_char_p, c_uint32, c_void_p
from pathlib import Path

from compare.errors import BenchError

from .cases import IDS_PER_CALL, Case, Form
from .contender import Contender, Prepared, Workplace
from .native import Shape, table

NAME = "Lanewise"
INTEGER_TYPES = ("i8", "u8", "i4", "u4", "i8u4", "u8u4", "u4bits", "bits")


class Variant(ctypes.Structure):
    """`struct lw_variant`."""

    _fields_ = (
        ("op", c_char_p),
        ("type", c_char_p),
        ("isa", c_char_p),
        ("kernel", c_uint32),
        ("needs", c_uint32),
        ("one", c_void_p),
        ("rows", c_void_p),
        ("ids", c_void_p),
        ("tile", c_void_p),
    )


class Library:
    """The loaded library, and which of its variants run here."""

    def __init__(self, path: Path, named: int) -> None:
        try:
            self._library = ctypes.CDLL(str(path.absolute()))
        except OSError as error:
            raise BenchError(
                f"cannot load {path} ({error}): build the shared library, or name it by --library"
            ) from error
        try:
            self._open(named)
        except AttributeError as error:
            raise BenchError(f"{path} lacks a function of lanewise_kernels.h: {error}") from error

    def _open(self, named: int) -> None:
        library = self._library
        library.lw_kernel_count.restype = c_uint32
        library.lw_cpu_features.restype = c_uint32
        count = library.lw_kernel_count()

        class Choice(ctypes.Structure):
            """`struct lw_choice`."""

            _fields_ = (
                ("level", c_char_p),
                ("cpu", c_uint32),
                ("allowed", c_uint32),
                ("status", c_uint32),
                ("slot", ctypes.POINTER(Variant) * count),
            )

        library.lw_chosen.restype = ctypes.POINTER(Choice)
        choice = library.lw_chosen().contents
        if choice.status:
            raise BenchError("LANEWISE_ISA names no level that this CPU has: unset it")
        self.level = choice.level.decode()
        self.features: int = library.lw_cpu_features()
        self.chosen = {kernel_of(slot.contents): slot.contents.isa.decode() for slot in choice.slot}
        self.variants = [
            variant
            for variant in table(library, "lw_variants", Variant)
            if not variant.needs & ~(self.features | named)
            # What the system must permit first (AMX) runs once it has.
            and library.lw_permit(c_uint32(variant.needs))
        ]
        self.kernels = [tuple(name.split("_", 1)) for name in self.chosen]

    def contenders(self, case: Case, every: bool) -> list[Contender]:
        """The variants for `case`: all, or the one that the library chooses."""
        mine = [v for v in self.variants if kernel_of(v) == case.kernel]
        found = [
            Contender(NAME, v.isa.decode(), preparer(v, case))
            for v in mine
            if every or v.isa.decode() == self.chosen[case.kernel]
        ]
        if case.op == "l2" and case.type in ("i8", "u8") and case.form != Form.TILE:
            # What the index runs: an inner product, and the squared lengths stored beside it.
            isa = self.chosen[f"dot_{case.type}"]
            for v in self.variants:
                if kernel_of(v) == f"dot_{case.type}" and v.isa.decode() == isa:
                    found.append(Contender(NAME, f"{isa}, norms", preparer(v, case, norms=True)))
        return found

    def is_chosen(self, case: Case, variant: str) -> bool:
        """Whether users of the library get that variant (norms being theirs to choose)."""
        return variant == self.chosen[case.kernel] or variant.endswith(", norms")


def kernel_of(variant: Variant) -> str:
    """Operation and type, as in `dot_i8`."""
    return f"{variant.op.decode()}_{variant.type.decode()}"


def preparer(variant: Variant, case: Case, norms: bool = False):
    """How a job of `variant` in the form of `case` is made."""
    is_integer = case.type in INTEGER_TYPES and case.op not in ("cosine", "jaccard")
    result = "u2" if case.is_scan else "i4" if is_integer else "f4"
    one = Shape.PAIR_NORMS if norms else Shape.PAIR_I32 if is_integer else Shape.PAIR_F32
    rows = Shape.ROWS_NORMS if norms else Shape.SCAN if case.is_scan else Shape.ROWS
    shape, function = {
        Form.ONE: (one, variant.one),
        Form.ROWS_L2: (rows, variant.rows),
        Form.ROWS_MEMORY: (rows, variant.rows),
        Form.IDS: (Shape.IDS_NORMS if norms else Shape.IDS, variant.ids),
        Form.TILE: (Shape.TILE, variant.tile),
    }[case.form]

    def prepare(place: Workplace) -> Prepared | None:
        if not function:
            return None
        job = place.job(shape, function)
        job.per_call = IDS_PER_CALL
        if norms:
            job.norms, job.query_norm = place.norms()
        return Prepared(job, result)

    return prepare
