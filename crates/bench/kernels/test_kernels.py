"""Tests of what the kernel benchmark computes itself: its clock's loops, its checks, its record."""

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from compare.errors import BenchError

from . import __main__ as program
from . import arm, expected, limits, panama, roofline
from .cases import FORMATS, Case, Form, cases
from .contender import Contender, Memory, Prepared, Workplace
from .lanewise import NAME
from .machine import Level
from .measure import Plan, Row, ratio, run
from .native import HERE, Harness, Job, Shape
from .report import Record

PAIR_OUT = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)
FLOATS = Case("dot", "f32", 64, Form.ONE)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    return Harness(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory(32 << 20)


class TestHarness:
    def test_shapes_are_numbered_as_in_c(self) -> None:
        text = (HERE / "harness.c").read_text()
        body = re.sub(r"/\*.*?\*/", "", text[text.index("enum shape {") :], flags=re.DOTALL)
        names = re.findall(r"\b[A-Z][A-Z0-9_]+\b", body[: body.index("}")])
        assert names == [shape.name for shape in Shape]

    def test_job_is_laid_out_as_in_c(self) -> None:
        text = (HERE / "harness.c").read_text()
        body = re.sub(r"/\*.*?\*/", "", text[text.index("struct job {") :], flags=re.DOTALL)
        lines = body[body.index("{") + 1 : body.index("};")].split(";")
        names = re.findall(r"(\w+)\)?(?:\(void\))?(?:,|$)", ",".join(lines), re.MULTILINE)
        assert [name for name in names if name != "void"] == [name for name, _ in Job._fields_]

    @pytest.mark.parametrize("ids", [None, [2, 0, 1]])
    def test_pairs_are_looped_over_queries_and_rows(
        self, harness: Harness, ids: list[int] | None
    ) -> None:
        seen = []
        call = PAIR_OUT(lambda q, row, n, out: seen.append((q, row, n, out)))
        numbers = numpy.array(ids or [], numpy.uint32)
        job = Job(shape=Shape.PAIR_OUT, fn=ctypes.cast(call, ctypes.c_void_p), result_bytes=8)
        job.q, job.q_stride, job.queries = 1000, 10, 2
        job.base, job.stride, job.count, job.n, job.out = 5000, 100, 3, 7, 9000
        job.ids = numbers.ctypes.data if ids else None
        assert harness.time(job, 2) > 0
        wanted = [
            (1000 + 10 * i, 5000 + 100 * (ids or range(3))[k], 7, 9000 + 8 * (3 * i + k))
            for i in range(2)
            for k in range(3)
        ]
        assert seen == wanted * 2

    def test_every_limit_runs_where_its_features_are(self, harness: Harness) -> None:
        kernels = {(step.op, step.type) for step in harness.steps}
        assert len(harness.loads) >= 1
        assert all(kind.decode() in {*FORMATS, "pq4"} for _, kind in kernels)

    def test_loads_read_no_further_than_the_last_line(self, harness: Harness) -> None:
        import mmap

        page = mmap.PAGESIZE
        two = mmap.mmap(-1, 2 * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(two))
        libc = ctypes.CDLL(None)
        assert libc.mprotect(ctypes.c_void_p(address + page), page, 0) == 0
        try:
            for shape, name in ((Shape.PAIR_F32, "one"), (Shape.ROWS, "rows"), (Shape.IDS, "ids")):
                job = Job(shape=shape, fn=getattr(harness.loads[0], name), queries=1, per_call=4)
                out, ids = numpy.zeros(64), numpy.arange(4, dtype=numpy.uint32)
                job.q = job.base = address + page - 4 * 64
                job.stride = job.n = 64
                job.count, job.ids, job.out = 4, ids.ctypes.data, out.ctypes.data
                job.q = address
                assert harness.time(job) > 0
        finally:
            libc.mprotect(ctypes.c_void_p(address + page), page, mmap.PROT_READ)


class TestExpected:
    def test_small_kernels_by_hand(self) -> None:
        def bytes_of(*values: int) -> numpy.ndarray:
            return numpy.array(values, numpy.uint8)

        assert expected.pair("dot", "i8", bytes_of(255, 2), bytes_of(3, 4))[0] == -3 + 8
        assert expected.pair("l2", "u8", bytes_of(255, 2), bytes_of(3, 4))[0] == 252**2 + 4
        assert expected.pair("dot", "i4", bytes_of(0xF2), bytes_of(0x37))[0] == -3 + 14
        assert expected.pair("dot", "u4", bytes_of(0xF2), bytes_of(0x37))[0] == 45 + 14
        # The query's first number meets the high half, its second the low half.
        assert expected.pair("dot", "i8u4", bytes_of(251, 9), bytes_of(0x31))[0] == -15 + 9
        planes = bytes_of(0b1, 0b11, 0b10, 0b10)
        assert expected.pair("dot", "u4bits", planes, bytes_of(0b11))[0] == 1 + 4 + 4 + 8
        assert expected.pair("hamming", "bits", bytes_of(0xF0), bytes_of(0x3C))[0] == 4
        assert expected.pair("jaccard", "bits", bytes_of(0xF0), bytes_of(0x3C))[0] == 1 - 2 / 6
        # FAISS's signed bytes: 128 stands for 0.
        assert expected.pair("dot", "i8offset", bytes_of(2), bytes_of(131))[0] == 6

    def test_formats_with_float_queries(self) -> None:
        query = numpy.array([1.5, -2], "f4").view(numpy.uint8)
        halves = numpy.array([2, 3], "f2").view(numpy.uint8)
        brains = numpy.array([0x4000, 0x4040], "u2").view(numpy.uint8)  # 2 and 3
        assert expected.pair("dot", "f32f16", query, halves)[0] == -3
        assert expected.pair("l2", "f32bf16", query, brains)[0] == 0.25 + 25
        assert expected.pair("dot", "f32i8", query, numpy.array([2, 255], "u1"))[0] == 3 + 2
        assert expected.pair("dot", "f32u8", query, numpy.array([2, 255], "u1"))[0] == 3 - 510

    def test_a_block_of_codes(self) -> None:
        tables = numpy.arange(32, dtype=numpy.uint8)  # two tables: 0..15 and 16..31
        block = numpy.zeros(32, numpy.uint8)
        block[0] = 0x5A  # first sub-quantizer: vector 0 code 10, vector 16 code 5
        block[16] = 0x21  # second: vector 0 code 1, vector 16 code 2
        sums = expected.scan(tables, block)
        assert sums[0] == 10 + 17
        assert sums[16] == 5 + 18
        assert set(sums[1:16]) == {16.0}


class TestMeasure:
    @staticmethod
    def contender(values: list[float]) -> Contender:
        """One that always writes `values`."""
        results = numpy.array(values, "f4")

        def write(q: int, row: int, n: int, out: int) -> None:
            ctypes.memmove(out, results.ctypes.data, results.nbytes)

        call = PAIR_OUT(write)

        def prepare(place: Workplace) -> Prepared:
            place.count = 1
            job = place.job(Shape.PAIR_OUT, ctypes.cast(call, ctypes.c_void_p))
            job.result_bytes = 4
            return Prepared(job, "f4", keep=(call,))

        return Contender("Someone", "python", prepare)

    def test_only_right_results_are_measured(self, harness: Harness, memory: Memory) -> None:
        query = memory.queries.bytes[: FLOATS.query_bytes]
        right = expected.pair("dot", "f32", query, memory.small.bytes[: FLOATS.row_bytes])[0]
        both = [self.contender([right]), self.contender([right + 100.0])]
        rows = run(FLOATS, both, memory, harness, Plan(3, 1.0))
        assert len(rows[0].ns) == 3
        assert rows[0].off < 1e-6
        assert rows[1].ns == []
        assert "computes something else" in rows[1].reason

    def test_not_a_number_is_wrong(self, harness: Harness, memory: Memory) -> None:
        rows = run(FLOATS, [self.contender([float("nan")])], memory, harness, Plan(1, 1.0))
        assert rows[0].reason

    def test_timings_from_memory_move_on(self, memory: Memory) -> None:
        place = Workplace(memory, Case("dot", "i8", 768, Form.ROWS_MEMORY))
        prepared = Prepared(place.job(Shape.ROWS, None), "i4")
        starts = []
        for _ in range(8):
            place.advance(prepared)
            starts.append(prepared.job.base - memory.matrix.address)
            end = starts[-1] + place.count * 768
            assert 0 <= starts[-1] < end <= memory.matrix.size + 64
        assert len(set(starts[:3])) == 3

    def test_no_number_of_the_memory_is_odd(self, memory: Memory) -> None:
        for kind in ("f4", "f2"):
            values = memory.small.bytes[: 1 << 20].view(kind)
            assert numpy.isfinite(values).all()
            assert (numpy.abs(values) > 1e-3).all()

    def test_scans_have_their_own_sizes(self) -> None:
        found = cases([("dot", "i8"), ("scan", "pq4")], (768,))
        assert len(found) == 5 + 3 * 2
        assert {case.row_bytes for case in found if case.is_scan} == {512, 1024, 1536}


def record(rows: list[Row], facts: dict[str, str] | None = None) -> Record:
    library = SimpleNamespace(is_chosen=lambda case, variant: variant != "old")
    levels = [Level("L1", 1024, 200.0), Level("memory", 1 << 30, 10.0)]
    return Record(facts or {"cpu": "some"}, Plan(3, 1.0), levels, rows, library, [], [], None)


class TestRecord:
    CASE = Case("dot", "i8", 768, Form.ONE)

    def rows(self, theirs: float) -> list[Row]:
        return [
            Row(self.CASE, NAME, "new", [10.0, 11.0, 12.0]),
            Row(self.CASE, NAME, "old", [1.0, 1.0, 1.0]),
            Row(self.CASE, "Peer", "a", [theirs] * 3),
            Row(self.CASE, "Peer", "b", [99.0] * 3),
            Row(self.CASE, limits.NAME, limits.LOADS, [8.0, 8.0, 9.0]),
            Row(self.CASE, limits.NAME, limits.STEP + "xor, dpbusd", [4.0] * 3),
        ]

    def test_ratios_are_formed_inside_a_round(self) -> None:
        disturbed = Row(self.CASE, NAME, "new", [10.0, 40.0, 10.0])
        other = Row(self.CASE, "Peer", "a", [20.0, 80.0, 30.0])
        assert ratio(other, disturbed) == 2.0

    def test_only_the_chosen_variant_counts_as_ours(self) -> None:
        page = record(self.rows(22.0)).markdown()
        assert "| dot_i8 | 2.00 Peer |" in page
        assert "Nowhere." in page
        assert "| one | 1 of 1 | 2.00 to 2.00 | 0 of 1 |" in page
        # The loads alone take 8 of 10, 8 of 11 and 9 of 12 nanoseconds.
        assert "| dot_i8 | 75% loads |" in page

    def test_losers_are_told(self) -> None:
        page = record(self.rows(5.5)).markdown()
        assert "**0.50 Peer**" in page
        assert "| dot_i8 | 768 | one | new 11 | Peer a 5.5 | 0.50 |" in page

    def test_csv_has_a_line_for_each(self, tmp_path: Path) -> None:
        path = tmp_path / "kernels.csv"
        record(self.rows(22.0)).write_csv(path)
        lines = path.read_text().splitlines()
        assert len(lines) == 1 + 6
        # The row's 768 bytes and the query's, in 11 ns; 2 is the ratio to the peer.
        assert lines[1].startswith("dot,i8,768,one,Lanewise,new,1,11,139.6,0.750,2.000,")

    def test_an_unmeasured_one_is_told_and_does_not_count(self) -> None:
        rows = [*self.rows(22.0), Row(self.CASE, "Peer", "c", reason="computes something else")]
        page = record(rows).markdown()
        assert "| dot_i8 | 768 | one | Peer c | computes something else |" in page
        assert "| dot_i8 | 2.00 Peer |" in page

    def test_a_wrong_kernel_is_left_out_of_the_picture(self, tmp_path: Path) -> None:
        case = Case("dot", "f32", 768, Form.ONE)
        wrong = [
            Row(case, NAME, "new", reason="wrong"),
            Row(case, limits.NAME, limits.STEP + "fma", [9.0] * 3),
        ]
        assert roofline.draw(tmp_path / "a.png", record(self.rows(15.0) + wrong))

    def test_picture_is_drawn(self, tmp_path: Path) -> None:
        path = tmp_path / "kernels.png"
        assert roofline.draw(path, record(self.rows(22.0)))
        assert path.read_bytes().startswith(b"\x89PNG")

    def test_lines_of_one_height_are_one(self) -> None:
        lines = roofline._merged({"L1": 300.0, "L3": 16.0, "memory": 15.5})
        assert lines == [("L1", 300.0), ("L3, memory", 15.75)]


class TestPanama:
    def test_figures_are_read_and_shown(self, tmp_path: Path) -> None:
        path = tmp_path / "lucene.csv"
        path.write_text("kernel,dims,way,ns\ndot_i8,768,lucene,34.7\ndot_i8,768,heap,11.1\n")
        shown = record(TestRecord().rows(22.0))
        shown.lucene = panama.read(path)
        assert "| dot_i8 | 768 | 34.7 | 11.1 |  |  | 11.0 | 3.13 |" in shown.markdown()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b\n", "first line must be"),
            ("kernel,dims,way,ns\ndot_i8,x,heap,1\n", "damaged"),
            ("kernel,dims,way,ns\ndot_i8,768\n", "damaged"),
            ("kernel,dims,way,ns\ndot_i8,768,heap,0\n", "above zero"),
            ("kernel,dims,way,ns\ndot_i8,768,heap,nan\n", "above zero"),
        ],
    )
    def test_damaged_files_are_clear_errors(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "lucene.csv"
        path.write_text(text)
        with pytest.raises(BenchError, match=message):
            panama.read(path)

    @staticmethod
    def measure(folder: Path, script: str, quick: bool = False) -> list[panama.Figure]:
        path = folder / "java"
        path.write_text(script)
        return panama.measure(path, folder / "libraries", folder / "lucene.csv", quick)

    def test_the_script_measures_with_our_libraries(self, tmp_path: Path) -> None:
        # What a script does that measures: $3 is the file.
        script = f"""test "$1 $2" = "bench --csv" || exit 1
            test "$KERNELS" = "{tmp_path}/libraries" || exit 1
            echo kernel,dims,way,ns >"$3"
            echo "dot_i8,768,${{4:-all}},2.5" >>"$3"
            """
        assert self.measure(tmp_path, script) == [panama.Figure("dot_i8", 768, "all", 2.5)]
        assert self.measure(tmp_path, script, quick=True)[0].way == "--quick"

    def test_why_lucene_is_missing_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "lucene.csv").write_text("kernel,dims,way,ns\ndot_i8,768,heap,1\n")
        with pytest.raises(BenchError, match="install a JDK"):
            self.measure(tmp_path, "echo install a JDK; exit 77")
        # The figures of an earlier run are not taken for this one's.
        with pytest.raises(BenchError, match="failed with status 3"):
            self.measure(tmp_path, "exit 3")


class TestProgram:
    ALWAYS = ("--library", "none.so")

    def suffix(self, *arguments: str) -> str:
        return program._suffix(program._options([*self.ALWAYS, *arguments]))

    def test_smaller_runs_have_records_of_their_own(self) -> None:
        assert self.suffix() == ""
        assert self.suffix("--quick") == "-quick"
        assert self.suffix("--dims", "768") == self.suffix("--kernels", "dot_i8") == "-part"

    def test_a_part_does_without_lucene_and_arm(self, tmp_path: Path) -> None:
        script = tmp_path / "java"
        script.write_text("exit 77")
        missing: list[str] = []
        both = ["--java", str(script), "--arm-library", "none.so", "--out", str(tmp_path)]
        options = program._options([*self.ALWAYS, *both])
        found = program._elsewhere(options, tmp_path, missing)
        assert (len(missing), "Not counted" in found[1]) == (1, True)
        options = program._options([*self.ALWAYS, *both, "--dims", "768"])
        assert program._elsewhere(options, tmp_path, missing) == ([], None)
        assert len(missing) == 1

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (("--dims", "100"), "multiples of 64"),
            (("--dims", "8256"), "at most 8192"),
            (("--rounds", "0"), "whole number above zero"),
            # Less than the readings go over.
            (("--memory", "63"), "must be 64 or more"),
        ],
    )
    def test_wrong_options(
        self, wrong: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit, match="2"):
            program._options([*self.ALWAYS, *wrong])
        assert message in capsys.readouterr().err


class TestArm:
    def test_each_isa_has_a_core_that_knows_it(self) -> None:
        found = {each.title: each.cpu for each in arm.columns(["scalar", "neon", "dotprod", "sve"])}
        assert found["neon"] == "cortex-a72"
        assert found["dotprod"] == "neoverse-n1"
        assert found["sve 512"] == "max,sve-max-vq=4"
        assert found["compiler, SVE 128"] == "max,sve-max-vq=1"

    def test_without_a_library_the_record_says_so(self, tmp_path: Path) -> None:
        assert "Not counted" in arm.table(tmp_path, tmp_path / "none.so")

    def test_a_library_that_does_not_run_ends_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: object) -> list[tuple[str, str, str]]:
            raise BenchError("no loader")

        monkeypatch.setattr(arm.Emulator, "__init__", lambda *_: None)
        monkeypatch.setattr(arm.Emulator, "variants", fail)
        assert "Not counted: no loader" in arm.table(tmp_path, tmp_path)
