"""The other libraries, by their C functions in the wheels' shared objects.

NumKong and SimSIMD are asked for the function itself (`…_find_…`), so that no dispatch is timed,
with all capabilities that they find here. FAISS's float and Hamming functions are called by their
C++ names, as its own dispatch routes them; its scalar quantizers (8 bit, f16, bf16, float queries)
by their distance computer's virtual function. Where a library has no form, its one-to-one
function is called in a loop, which is what its users do.
"""

import ctypes
import importlib.metadata
from ctypes import c_size_t, c_uint64, c_void_p
from pathlib import Path

import numpy
from compare.errors import BenchError

from .cases import Case, Form
from .contender import Contender, Prepared, Workplace
from .expected import decode
from .native import Shape

# Capability bits of NumKong 7.8 and SimSIMD 6.5, by their own names.
NUMKONG_CAPS = {
    0: "serial", 1: "neon", 2: "haswell", 3: "skylake", 4: "neonhalf", 5: "neonsdot", 6: "neonfhm",
    7: "icelake", 8: "genoa", 9: "neonbfdot", 10: "sve", 11: "svehalf", 12: "svesdot", 13: "alder",
    14: "svebfdot", 15: "sve2", 17: "sapphire", 18: "sapphireamx", 22: "graniteamx", 23: "turin",
    34: "sierra", 38: "diamond",
}  # fmt: skip
SIMSIMD_CAPS = {
    0: "serial", 10: "haswell", 11: "skylake", 12: "ice", 13: "genoa", 14: "sapphire", 15: "turin",
    16: "sierra", 20: "neon", 21: "neon_f16", 22: "neon_bf16", 23: "neon_i8", 24: "sve",
    25: "sve_f16", 26: "sve_bf16", 27: "sve_i8", 28: "sve2",
}  # fmt: skip


class Peer:
    """A library: `name`, `version`, `level` (what it found here), and its contenders."""

    name = ""
    level = ""

    def __init__(self, distribution: str) -> None:
        try:
            self.version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError as error:
            raise BenchError(f"{distribution} is not installed: make bench-kernels does") from error
        self.files = [
            Path(str(file.locate()))
            for file in importlib.metadata.files(distribution) or []
            if ".so" in file.name
        ]

    def contenders(self, case: Case) -> list[Contender]:
        raise NotImplementedError

    def open(self, part: str) -> ctypes.CDLL:
        """The shared object whose name begins with `part`."""
        for file in self.files:
            if file.name.startswith(part):
                return ctypes.CDLL(str(file))
        raise BenchError(f"{self.name} {self.version} has no {part}: use the pinned version")


def pair_loop(function: int, result: str, meaning=lambda v: v):
    """One-to-one calls of `void fn(a, b, n, out)`, looped over what the case holds."""

    def prepare(place: Workplace) -> Prepared:
        job = place.job(Shape.PAIR_OUT, function)
        job.result_bytes = numpy.dtype(result).itemsize
        if place.case.type in ("i4", "u4", "bits"):
            job.n = place.case.dim  # these libraries count numbers, not bytes
        return Prepared(job, result, meaning)

    return prepare


class NumKong(Peer):
    """NumKong: one-to-one functions, and its packed matrices where rows are compared many times."""

    name = "NumKong"
    KINDS = {"dot": "i", "l2": "2", "cosine": "a", "hamming": "h", "jaccard": "j"}  # noqa: RUF012
    TYPES = {"bits": "u1"}  # noqa: RUF012
    # What it writes: floats are summed in f64, integers stay what they are.
    DOTS = {  # noqa: RUF012
        "f32": "f8",
        "f16": "f4",
        "bf16": "f4",
        "i8": "i4",
        "u8": "u4",
        "i4": "i4",
        "u4": "u4",
        "u1": "u4",
    }
    L2 = DOTS | {"i8": "u4", "i4": "u4"}

    def __init__(self) -> None:
        super().__init__("numkong")
        self.library = self.open("_numkong")
        self.library.nk_capabilities.restype = c_uint64
        self.caps = self.library.nk_capabilities()
        # Without it the tiles of AMX may not be touched.
        self.library.nk_configure_thread(c_uint64(self.caps))
        names = [name for bit, name in NUMKONG_CAPS.items() if self.caps >> bit & 1]
        self.level = " ".join(names)

    def find(self, kind: str, letter: str) -> tuple[int, str] | None:
        """The function, and the capability that it is for."""
        find = getattr(self.library, f"nk_dispatch_{kind}_find_", None)
        if find is None:
            return None
        function, cap = c_void_p(), c_uint64()
        find(c_uint64(self.caps), ord(letter), ctypes.byref(function), ctypes.byref(cap))
        if not function.value or not cap.value:
            return None
        return function.value, NUMKONG_CAPS.get(cap.value.bit_length() - 1, hex(cap.value))

    def contenders(self, case: Case) -> list[Contender]:
        kind = self.TYPES.get(case.type, case.type)
        if case.op not in self.KINDS or kind not in self.DOTS:
            return []
        result = {"dot": self.DOTS[kind], "l2": self.L2[kind], "hamming": "u4"}.get(
            case.op, "f8" if kind == "f32" else "f4"
        )
        meaning = (lambda v: 1 - v) if case.op == "cosine" else (lambda v: v)
        found = []
        if pair := self.find(kind, self.KINDS[case.op]):
            found.append(Contender(self.name, pair[1], pair_loop(pair[0], result, meaning)))
        if case.form in (Form.ROWS_L2, Form.TILE) and case.op in ("dot", "hamming"):
            pack = [self.find(kind, letter) for letter in ("PQG" if case.op == "dot" else "PQM")]
            if all(pack):
                variant = f"{pack[2][1]}, packed"
                found.append(Contender(self.name, variant, self.packed(pack, result)))
        return found

    @staticmethod
    def packed(functions: list, result: str):
        """The rows packed once, before the clock: its users keep them so."""

        def prepare(place: Workplace) -> Prepared:
            (size_of, pack, multiply), case = [f[0] for f in functions], place.case
            n = case.dim
            size = ctypes.CFUNCTYPE(c_size_t, c_size_t, c_size_t)(size_of)(place.count, n)
            rows = numpy.zeros(size + 128, numpy.uint8)
            address = rows.ctypes.data + -rows.ctypes.data % 64
            ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p)(pack)(
                place.piece.address, place.count, n, case.row_bytes, address
            )
            job = place.job(Shape.NUMKONG_PACKED, multiply)
            job.base, job.n = address, n
            job.result_bytes = numpy.dtype(result).itemsize
            return Prepared(job, result, own_rows=True, keep=(rows,))

        return prepare


class SimSIMD(Peer):
    """SimSIMD: one-to-one functions."""

    name = "SimSIMD"
    KINDS = {"dot": "i", "l2": "e", "cosine": "c", "hamming": "h", "jaccard": "j"}  # noqa: RUF012
    TYPES = {"f32": 11, "f16": 12, "bf16": 13, "i8": 2, "u8": 6, "bits": 1}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__("simsimd")
        self.library = self.open("simsimd")
        self.library.simsimd_capabilities.restype = ctypes.c_uint32
        self.caps = self.library.simsimd_capabilities()
        self.level = " ".join(n for bit, n in SIMSIMD_CAPS.items() if self.caps >> bit & 1)

    def contenders(self, case: Case) -> list[Contender]:
        if case.op not in self.KINDS or case.type not in self.TYPES:
            return []
        function, cap = c_void_p(), ctypes.c_uint32()
        self.library.simsimd_find_kernel_punned(
            ord(self.KINDS[case.op]),
            1 << self.TYPES[case.type],
            self.caps,
            0x7FFFFFFF,
            ctypes.byref(function),
            ctypes.byref(cap),
        )
        if not function.value:
            return []
        meaning = (lambda v: 1 - v) if case.op == "cosine" else (lambda v: v)
        prepare = pair_loop(function.value, "f8", meaning)
        if case.type == "bits":
            inner = prepare

            def prepare(place: Workplace) -> Prepared:
                prepared = inner(place)
                prepared.job.n = case.row_bytes  # bytes here
                return prepared

        variant = SIMSIMD_CAPS.get(cap.value.bit_length() - 1, hex(cap.value))
        return [Contender(self.name, variant, prepare)]


class Faiss(Peer):
    """FAISS: float functions, Hamming, and the scalar quantizers' distance computers."""

    name = "FAISS"
    PAIRS = {  # noqa: RUF012
        ("dot", "f32"): "_ZN5faiss18fvec_inner_productEPKfS1_m",
        ("l2", "f32"): "_ZN5faiss10fvec_L2sqrEPKfS1_m",
        ("l1", "f32"): "_ZN5faiss7fvec_L1EPKfS1_m",
        ("linf", "f32"): "_ZN5faiss9fvec_LinfEPKfS1_m",
    }
    NY = {  # noqa: RUF012
        "dot": "_ZN5faiss22fvec_inner_products_nyEPfPKfS2_mm",
        "l2": "_ZN5faiss13fvec_L2sqr_nyEPfPKfS2_mm",
    }
    BY_IDX = {  # noqa: RUF012
        "dot": "_ZN5faiss26fvec_inner_products_by_idxEPfPKfS2_PKlmmm",
        "l2": "_ZN5faiss17fvec_L2sqr_by_idxEPfPKfS2_PKlmmm",
    }
    HAMMINGS = "_ZN5faiss8hammingsEPKhS1_mmmPi"
    QUANTIZERS = {  # noqa: RUF012
        "f16": "QT_fp16",
        "bf16": "QT_bf16",
        "i8": "QT_8bit_direct_signed",
        "u8": "QT_8bit_direct",
    }

    def __init__(self) -> None:
        super().__init__("faiss-cpu")
        import faiss

        self.faiss = faiss
        faiss.omp_set_num_threads(1)
        self.library = self.open("libfaiss")
        self.level = faiss.SIMDConfig.get_level_name()

    def symbol(self, name: str) -> int:
        try:
            return ctypes.cast(getattr(self.library, name), c_void_p).value
        except AttributeError as error:
            raise BenchError(f"no {name} in it: use the pinned version") from error

    def contenders(self, case: Case) -> list[Contender]:
        if case.type == "f32" and (case.op, case.type) in self.PAIRS:
            return self._floats(case)
        if case.kernel == "hamming_bits" and case.form not in (Form.ONE, Form.IDS):
            return [self._simple(Shape.FAISS_HAMMINGS, self.HAMMINGS, "hammings", "i4")]
        # With 8-bit rows it rounds the query, too: that is i8 and u8, not f32i8 and f32u8.
        rounded = case.type in ("f32i8", "f32u8")
        stored = "" if rounded else case.type.removeprefix("f32")
        if case.op in ("dot", "l2") and stored in self.QUANTIZERS and case.form != Form.ONE:
            return [Contender(self.name, self.QUANTIZERS[stored], self._quantizer(case, stored))]
        return []

    def _floats(self, case: Case) -> list[Contender]:
        found = [self._simple(Shape.PAIR_F32, self.PAIRS[case.op, case.type], "fvec")]
        if case.op not in self.NY:
            return found
        if case.form in (Form.ROWS_L2, Form.ROWS_MEMORY):
            found = [self._simple(Shape.FAISS_NY, self.NY[case.op], "fvec ny")]
        elif case.form == Form.IDS:
            found = [self._simple(Shape.FAISS_BY_IDX, self.BY_IDX[case.op], "fvec by_idx")]
        elif case.form == Form.TILE and case.op == "dot":
            blas = self.open("libopenblas")
            blas.openblas_set_num_threads(1)
            function = ctypes.cast(blas.sgemm_, c_void_p).value
            found = [self._call(Shape.SGEMM, function, "sgemm")]
        return found

    def _simple(self, shape: Shape, symbol: str, variant: str, result: str = "f4") -> Contender:
        return self._call(shape, self.symbol(symbol), variant, result)

    def _call(self, shape: Shape, function: int, variant: str, result: str = "f4") -> Contender:
        return Contender(self.name, variant, lambda p: Prepared(p.job(shape, function), result))

    def _quantizer(self, case: Case, stored: str):
        """The distance computer of IndexScalarQuantizer, made to read our rows. The function is
        `float operator()(idx_t)`, second of DistanceComputer's virtual ones since it exists."""
        faiss = self.faiss

        def prepare(place: Workplace) -> Prepared:
            metric = faiss.METRIC_INNER_PRODUCT if case.op == "dot" else faiss.METRIC_L2
            kind = getattr(faiss.ScalarQuantizer, self.QUANTIZERS[stored])
            index = faiss.IndexScalarQuantizer(case.dim, kind, metric)
            one = numpy.ones((1, case.dim), numpy.float32)
            index.train(one)
            index.add(one)
            computer = index.get_FlatCodesDistanceComputer()
            query = decode(case.type, place.query.bytes[: case.query_bytes], True).astype("f4")
            computer.set_query(faiss.swig_ptr(query))

            def move(start: int) -> None:
                computer.codes = faiss.swig_ptr(place.piece.bytes[start:])

            move(0)
            this = int(computer.this)
            functions = c_void_p.from_address(this).value
            job = place.job(Shape.PAIR_SELF, c_void_p.from_address(functions + 8).value)
            job.self = this
            return Prepared(
                job,
                "f4",
                row_type=f"{case.type}offset" if stored == "i8" else "",
                move=move,
                keep=(index, computer, query),
            )

        return prepare


def peers() -> tuple[list[Peer], list[str]]:
    """The libraries that are there, and why others are not."""
    found, missing = [], []
    for peer in (NumKong, SimSIMD, Faiss):
        try:
            found.append(peer())
        except (BenchError, OSError, ImportError, AttributeError) as error:
            missing.append(f"{peer.name}: {error}")
    return found, missing
