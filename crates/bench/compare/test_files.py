"""Tests of reading vectors from files, and of the form data sets are kept in."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from .dataset import load, store, unit
from .errors import BenchError
from .files import BASE_IDX, QUERIES_IDX, read, read_idx, read_rows


def idx(shape: tuple[int, int, int], pixels: bytes, magic: bytes = b"\0\0\x08\x03") -> bytes:
    return gzip.compress(magic + b"".join(n.to_bytes(4, "big") for n in shape) + pixels)


def write(path: Path, blob: bytes) -> Path:
    path.write_bytes(blob)
    return path


def random_u8(rows: int, dim: int = 16, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, dim), np.uint8)


class TestFiles:
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

    def test_folder_of_idx_files(self, tmp_path: Path) -> None:
        base, queries = random_u8(9, 4), random_u8(5, 4, seed=2)
        write(tmp_path / BASE_IDX, idx((9, 2, 2), base.tobytes()))
        write(tmp_path / QUERIES_IDX, idx((5, 2, 2), queries.tobytes()))
        found = read(tmp_path)
        assert np.array_equal(found[0], base)
        assert np.array_equal(found[1], queries)

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
            read(tmp_path / "a.npz")

    def test_a_file_without_queries_asks_for_them(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones((2, 2)))
        with pytest.raises(BenchError, match="--queries"):
            read(tmp_path / "a.npy")


class TestKept:
    def test_stored_once_whole_and_mapped(self, tmp_path: Path) -> None:
        calls = []

        def write(scratch: Path) -> tuple[str, str]:
            calls.append(scratch)
            np.save(scratch / "base.npy", random_u8(9))
            np.save(scratch / "queries.npy", random_u8(3, seed=2))
            return "hamming", "from nowhere"

        for _ in range(2):
            assert store(tmp_path / "some", write) == tmp_path / "some"
        assert len(calls) == 1
        assert [each.name for each in tmp_path.iterdir()] == ["some"]
        data = load(tmp_path / "some", 7)
        assert isinstance(data.base, np.memmap)
        assert np.array_equal(data.base, random_u8(9)[:7])
        assert (data.metric, data.about, data.dim) == ("hamming", "from nowhere", 128)

    def test_a_writer_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        def write(scratch: Path) -> tuple[str, str]:
            np.save(scratch / "base.npy", random_u8(9))
            raise BenchError("no more")

        with pytest.raises(BenchError, match="no more"):
            store(tmp_path / "some", write)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(BenchError, match="remove it"):
            load(tmp_path / "some")

    def test_unit_vectors(self) -> None:
        rows = unit(np.array([[3, 4], [0, 9]], np.uint8))
        np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 1]], rtol=1e-6)
        with pytest.raises(BenchError, match="zeros"):
            unit(np.zeros((1, 2)))
