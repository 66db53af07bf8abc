"""What is measured: a kernel at a number of dimensions in a form."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

DIMS = (384, 768, 1024, 1536, 4096)
# Sub-quantizers, where a kernel counts those.
QUANTIZERS = (32, 64, 96)
# Where all variants are measured, and not only the one that the library chooses.
VARIANTS_DIM, VARIANTS_QUANTIZERS = 768, 64
TILE_QUERIES, TILE_ROWS = 32, 128
# As many as a graph node of m = 32 has neighbours in the base layer.
IDS_PER_CALL = 64
SCAN_BLOCK = 32


class Form(StrEnum):
    """How a kernel is called, and where the rows lie."""

    ONE = "one"  # one-to-one, both in the L1
    ROWS_L2 = "rows L2"  # one query, rows in sequence, in the L2
    ROWS_MEMORY = "rows memory"  # the same, from memory
    IDS = "ids memory"  # one query, random rows from memory
    TILE = "tile"  # 32 queries by 128 rows


@dataclass(frozen=True)
class Format:
    """Bits of an element of the query and of the row, and elements that `n` counts as one."""

    query_bits: int
    row_bits: int
    per_n: int = 1


FORMATS = {
    "f32": Format(32, 32),
    "f16": Format(16, 16),
    "bf16": Format(16, 16),
    "f32f16": Format(32, 16),
    "f32bf16": Format(32, 16),
    "f32i8": Format(32, 8),
    "f32u8": Format(32, 8),
    "i8": Format(8, 8),
    "u8": Format(8, 8),
    "i4": Format(4, 4, 2),
    "u4": Format(4, 4, 2),
    "i8u4": Format(8, 4, 2),
    "u8u4": Format(8, 4, 2),
    "u4bits": Format(4, 1, 8),
    "bits": Format(1, 1, 8),
}


@dataclass(frozen=True)
class Case:
    """One group of the benchmark. `dim`: dimensions; sub-quantizers for a scan."""

    op: str
    type: str
    dim: int
    form: Form

    @property
    def kernel(self) -> str:
        return f"{self.op}_{self.type}"

    @property
    def is_scan(self) -> bool:
        return self.op == "scan"

    @property
    def n(self) -> int:
        """The size as the kernel takes it."""
        return self.dim if self.is_scan else self.dim // FORMATS[self.type].per_n

    @property
    def row_bytes(self) -> int:
        """Bytes of a row; of a block of 32 for a scan."""
        return self.dim * 16 if self.is_scan else self.dim * FORMATS[self.type].row_bits // 8

    @property
    def query_bytes(self) -> int:
        return self.dim * 16 if self.is_scan else self.dim * FORMATS[self.type].query_bits // 8

    @property
    def results_per_row(self) -> int:
        """Distances that one `row_bytes` gives."""
        return SCAN_BLOCK if self.is_scan else 1


def cases(kernels: list[tuple[str, str]], dims: Sequence[int]) -> list[Case]:
    """All cases of `kernels`, a kernel's own beside each other."""
    all_cases = []
    for op, kind in kernels:
        scan = op == "scan"
        forms = (Form.ROWS_L2, Form.ROWS_MEMORY) if scan else tuple(Form)
        for dim in QUANTIZERS if scan else dims:
            all_cases += [Case(op, kind, dim, form) for form in forms]
    return all_cases
