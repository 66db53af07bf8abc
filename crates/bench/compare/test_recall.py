"""Tests of exact search, recall and local dimension."""

from pathlib import Path

import numpy as np
import pytest

from .dataset import Dataset
from .recall import cached_nearest, distances, local_dimension, nearest, recall


def random_u8(rows: int, dim: int = 16, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, dim), np.uint8)


class TestRecall:
    @pytest.mark.parametrize(
        ("kind", "block"), [("u8", 64), ("f32", 64), ("f32", 1024), ("bits", 64)]
    )
    def test_nearest_equals_brute_force_in_any_blocks(
        self, kind: str, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("compare.recall.BASE_BLOCK", block)
        monkeypatch.setattr("compare.recall.QUERY_BLOCK", 7)
        data = Dataset(random_u8(300), random_u8(50, seed=2))
        if kind == "bits":
            bits = [np.unpackbits(rows, axis=1) for rows in (data.base, data.queries)]
            exact = np.sort((bits[0][None] != bits[1][:, None]).sum(axis=2), axis=1)[:, :10]
            data = Dataset(data.base, data.queries, "hamming")
            assert np.array_equal(distances(data, nearest(data, 10)), exact)
            return
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

    def test_fewer_vectors_than_neighbours_are_all_found(self) -> None:
        data = Dataset(random_u8(5), random_u8(3, seed=2))
        assert np.array_equal(np.sort(nearest(data, 10), axis=1), [[0, 1, 2, 3, 4]] * 3)

    def test_recall_of_the_first_queries_only(self) -> None:
        data = Dataset(random_u8(50), random_u8(20, seed=2))
        truth = nearest(data, 10)
        threshold = distances(data, truth)[:, -1]
        assert recall(data, threshold, truth[:7]) == 1
        assert recall(data, threshold, np.full((7, 10), -1)) == 0

    @pytest.mark.parametrize("dim", [2, 8])
    def test_local_dimension_of_a_filled_cube(self, dim: int) -> None:
        rng = np.random.default_rng(3)
        base, queries = np.zeros((20_000, 40), np.float32), np.zeros((200, 40), np.float32)
        base[:, :dim] = rng.random((20_000, dim), np.float32)
        queries[:, :dim] = 0.25 + rng.random((200, dim), np.float32) / 2
        data = Dataset(base, queries)
        assert local_dimension(data, nearest(data, 100)) == pytest.approx(dim, rel=0.15)

    def test_copies_of_a_query_have_no_dimension(self) -> None:
        data = Dataset(np.ones((120, 4), np.float32), np.ones((2, 4), np.float32))
        assert local_dimension(data, nearest(data, 100)) == 0

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
