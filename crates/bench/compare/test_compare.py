"""Tests of what the comparison computes itself, and of a worker that fails."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from . import adapters, curves, report
from .adapters import NotApplicable
from .curves import Reading
from .dataset import BASE_IDX, QUERIES_IDX, Dataset, Source, read_idx, read_rows
from .driver import Plan, Results, Row
from .errors import BenchError
from .recall import cached_nearest, distances, nearest, recall
from .worker import Worker, WorkerFailed


def idx(shape: tuple[int, int, int], pixels: bytes, magic: bytes = b"\0\0\x08\x03") -> bytes:
    return gzip.compress(magic + b"".join(n.to_bytes(4, "big") for n in shape) + pixels)


def write(path: Path, blob: bytes) -> Path:
    path.write_bytes(blob)
    return path


def random_u8(rows: int, dim: int = 16, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, dim), np.uint8)


class TestDataset:
    def test_idx_file_becomes_rows_of_pixels(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.gz", idx((2, 1, 3), bytes([1, 2, 3, 253, 254, 255])))
        rows = read_idx(path)
        assert rows.dtype == np.uint8
        assert rows.tolist() == [[1, 2, 3], [253, 254, 255]]

    @pytest.mark.parametrize(
        ("blob", "message"),
        [
            (idx((2, 1, 3), bytes(5)), "promises 6 bytes"),
            (idx((2, 1, 3), bytes(7)), "promises 6 bytes"),
            (idx((0, 28, 28), b""), "promises 0 bytes"),
            (idx((2**32 - 1, 2**32 - 1, 9), b"x"), "promises"),
            (idx((2, 1, 3), bytes(6), magic=b"\0\0\x0d\x03"), "not an idx file"),
            (gzip.compress(b"\0\0"), "not an idx file"),
            (idx((2, 1, 3), bytes(6))[:-9], "cannot read"),
            (b"not gzip at all", "cannot read"),
        ],
    )
    def test_damaged_idx_file_is_a_clear_error(
        self, tmp_path: Path, blob: bytes, message: str
    ) -> None:
        with pytest.raises(BenchError, match=message):
            read_idx(write(tmp_path / "a.gz", blob))

    def test_folder_of_idx_files_loads_and_is_cut(self, tmp_path: Path) -> None:
        base, queries = random_u8(9, 4), random_u8(5, 4, seed=2)
        write(tmp_path / BASE_IDX, idx((9, 2, 2), base.tobytes()))
        write(tmp_path / QUERIES_IDX, idx((5, 2, 2), queries.tobytes()))
        data = Source(tmp_path, base_len=7, queries_len=3).load()
        assert np.array_equal(data.base, base[:7])
        assert np.array_equal(data.queries, queries[:3])

    def test_fvecs_and_bvecs(self, tmp_path: Path) -> None:
        floats = np.array([[1.5, -2.0], [0.25, 8.0]], "<f4")
        row = (2).to_bytes(4, "little")
        blob = b"".join(row + each.tobytes() for each in floats)
        assert np.array_equal(read_rows(write(tmp_path / "a.fvecs", blob)), floats)
        rows = read_rows(write(tmp_path / "a.bvecs", row + b"\x07\xff"))
        assert rows.tolist() == [[7, 255]]

    @pytest.mark.parametrize(
        "blob",
        [
            b"",
            b"\2\0",
            b"\xff\xff\xff\xff" + bytes(8),
            b"\2\0\0\0" + bytes(7),
            b"\1\0\0\0" + bytes(4) + b"\2\0\0\0" + bytes(4),
        ],
    )
    def test_damaged_fvecs_is_a_clear_error(self, tmp_path: Path, blob: bytes) -> None:
        with pytest.raises(BenchError, match="dimension"):
            read_rows(write(tmp_path / "a.fvecs", blob))

    @pytest.mark.parametrize(
        ("train", "test", "message"),
        [
            (np.ones((3, 2)), np.ones((3, 4)), "4 dimensions"),
            (np.full((3, 2), np.nan), np.ones((3, 2)), "NaN"),
            (np.ones(3), np.ones((3, 2)), "shape"),
            (np.array([["a"]]), np.ones((3, 1)), "numbers"),
            (np.array([[None]]), np.ones((3, 1)), "cannot read"),
        ],
    )
    def test_unfit_arrays_are_refused(
        self, tmp_path: Path, train: np.ndarray, test: np.ndarray, message: str
    ) -> None:
        np.savez(tmp_path / "a.npz", train=train, test=test)
        with pytest.raises(BenchError, match=message):
            Source(tmp_path / "a.npz").load()

    def test_a_file_without_queries_asks_for_them(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones((2, 2)))
        with pytest.raises(BenchError, match="--queries"):
            Source(tmp_path / "a.npy").load()


class TestRecall:
    @pytest.mark.parametrize(("kind", "block"), [("u8", 64), ("f32", 64), ("f32", 1024)])
    def test_nearest_equals_brute_force_in_any_blocks(
        self, kind: str, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("compare.recall.BASE_BLOCK", block)
        monkeypatch.setattr("compare.recall.QUERY_BLOCK", 7)
        data = Dataset(random_u8(300), random_u8(50, seed=2))
        if kind == "f32":
            # One large coordinate: the expanded form errs by more than near vectors differ.
            base, queries = (rows / np.float32(255) for rows in (data.base, data.queries))
            base[:, 0] = queries[:, 0] = 1e7
            data = Dataset(base, queries)
        difference = data.base.astype(np.float64)[None] - data.queries.astype(np.float64)[:, None]
        exact = np.sort((difference**2).sum(axis=2), axis=1)[:, :10]
        np.testing.assert_allclose(distances(data, nearest(data, 10)), exact, rtol=1e-12)

    def test_ties_count_and_repeats_strangers_and_gaps_do_not(self) -> None:
        base = np.array([[0], [1], [1], [5], [9]], np.uint8)
        data = Dataset(base, np.zeros((1, 1), np.uint8))
        threshold = distances(data, nearest(data, 2))[:, -1]
        for ids, expected in [
            ([0, 1], 1.0),
            ([2, 0], 1.0),  # the twin of vector 1
            ([0, 0], 0.5),
            ([0, 3], 0.5),
            ([0, -1], 0.5),
            ([0, 5], 0.5),
            ([-1, -1], 0.0),
        ]:
            assert recall(data, threshold, np.array([ids])) == expected, ids

    def test_unsigned_bytes_do_not_wrap(self) -> None:
        data = Dataset(np.array([[255]], np.uint8), np.array([[0]], np.uint8))
        assert distances(data, np.array([[0]])).tolist() == [[255.0**2]]

    def test_cache_is_used_mended_and_bound_to_the_data(self, tmp_path: Path) -> None:
        data = Dataset(random_u8(50), random_u8(5, seed=2))
        first = cached_nearest(data, 10, tmp_path)
        (path,) = tmp_path.iterdir()
        np.save(path, first[:, ::-1])
        assert np.array_equal(cached_nearest(data, 10, tmp_path), first[:, ::-1])
        path.write_bytes(path.read_bytes()[:-1])
        assert np.array_equal(cached_nearest(data, 10, tmp_path), first)
        cached_nearest(Dataset(data.base[::-1].copy(), data.queries), 10, tmp_path)
        assert len(list(tmp_path.iterdir())) == 2


class TestCurves:
    def test_pareto_drops_what_another_point_beats(self) -> None:
        points = [(0.9, 100.0), (0.95, 120.0), (0.99, 50.0), (0.99, 40.0), (0.97, 45.0)]
        assert curves.pareto(points) == [(0.95, 120.0), (0.99, 50.0)]
        assert curves.pareto([]) == []

    def test_interpolation_is_geometric_in_speed(self) -> None:
        points = [(0.99, 100.0), (0.90, 10_000.0), (0.95, 1.0)]
        assert curves.speed_at(points, 0.945).value == pytest.approx(1000)
        share = (0.96 - 0.90) / 0.09
        expected = math.exp(math.log(10_000) * (1 - share) + math.log(100) * share)
        assert curves.speed_at(points, 0.96).value == pytest.approx(expected)

    def test_interpolation_meets_the_points_and_its_ends(self) -> None:
        points = [(0.90, 30.0), (0.95, 20.0), (0.99, 10.0)]
        assert curves.speed_at(points, 0.95) == Reading(pytest.approx(20.0))
        assert curves.speed_at(points, 0.99) == Reading(pytest.approx(10.0))
        assert curves.speed_at(points, 0.90) == Reading(30.0, above=False)
        assert curves.speed_at(points, 0.80) == Reading(30.0, above=True)
        # A slow cheap setting leaves the front but still shows that the target is in reach.
        assert curves.speed_at([(0.80, 5.0), *points], 0.85) == Reading(30.0, above=False)
        assert curves.speed_at(points, 0.991) is None
        assert curves.speed_at([], 0.9) is None

    def test_ratio_is_the_median_of_the_rounds_ratios(self) -> None:
        ours = [Reading(20.0), Reading(60.0), Reading(10.0)]
        theirs = [Reading(10.0), Reading(20.0), Reading(10.0, above=True)]
        # The ratio of the medians, 20 / 10, is 2 as well; these rounds tell them apart.
        assert curves.ratio(ours, theirs) == curves.Summary(2.0, 1.0, 3.0, above=True)
        skewed = curves.ratio(ours, [Reading(10.0), Reading(20.0), Reading(2.0)])
        assert skewed == curves.Summary(3.0, 2.0, 5.0)

    def test_a_round_that_falls_short_leaves_no_figure(self) -> None:
        assert curves.summary([Reading(1.0), None]) is None
        assert curves.ratio([Reading(1.0)], [None]) is None


class TestAdapters:
    def test_shifted_bytes_keep_their_distances(self) -> None:
        rows = random_u8(20)
        shifted = adapters._i8(rows)
        assert shifted.dtype == np.int8
        assert np.array_equal(shifted.astype(int), rows.astype(int) - 128)

    def test_floats_are_no_bytes(self) -> None:
        with pytest.raises(NotApplicable, match="float32"):
            adapters._i8(np.ones((2, 2), np.float32))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    np.savez(tmp_path / "a.npz", train=random_u8(50), test=random_u8(5, seed=2))
    return Source(tmp_path / "a.npz")


class TestWorker:
    def test_an_absent_library_says_so(self, source: Source) -> None:
        worker = Worker("no-such-library", source)
        with pytest.raises(WorkerFailed, match="KeyError: 'no-such-library'"):
            worker.ask("release")
        worker.end()

    def test_a_process_that_dies_is_an_answer_not_a_hang(self, source: Source) -> None:
        worker = Worker("no-such-library", source)
        worker._process.kill()
        with pytest.raises(WorkerFailed, match="ended with status -9"):
            worker.ask("release")
        worker.end()
        assert not worker._process.is_alive()


class TestReport:
    @staticmethod
    def row(library: str, speed: float) -> Row:
        build = {
            "wall_s": 2.0,
            "cpu_s": 3.0,
            "grown_bytes": 900.4,
            "own_bytes": None,
            "kernels": "",
        }
        searches = {
            1: {
                ef: [
                    {
                        "recall": recall,
                        "qps": speed / ef * turn,
                        "cpu_qps": 2 * speed / ef,
                    }
                    for turn in (1, 2)
                ]
                for ef, recall in ((10, 0.92), (50, 0.95), (100, 0.98))
            }
        }
        latency = [{"p50_us": 10.0, "p99_us": 20.0}]
        return Row(library, None, f"{library} 1.0", [build], searches, latency, latency_ef=50)

    def test_tables_hold_ratios_marks_and_reasons(self) -> None:
        rows = [
            self.row("lanewise-f32", 3000),
            self.row("hnswlib", 1500),
            Row("usearch-f32", "OSError: a | b\nc"),
        ]
        plan = Plan(
            [row.library for row in rows],
            (10, 50, 100),
            [1],
            rounds=2,
            builds=1,
            seconds=1,
        )
        data = Dataset(random_u8(50), random_u8(5, seed=2))
        text = report.markdown(
            "title", {"cpu": "x"}, plan, data, Results(rows, [1.0, 2.0, 3.0, 4.0])
        )
        lines = text.splitlines()
        assert "| lanewise-f32 | ≥450 | 90 | — | 2.00 | 0.9800 |" in lines
        assert "| usearch-f32 | not run: OSError: a \\| b c |  |  |  |  |" in lines
        assert "| lanewise-f32 | 2.0 | 3.0 | 900 | — | 10 | 20 | 0.950 (ef 50) | — |" in lines
        both = "2.00* (2.00 to 2.00) | 2.00 (2.00 to 2.00) | —"
        assert f"| hnswlib | {both} | {both} |" in lines
