"""Tests of the generated data sets: the same from any length, and shaped as their laws say."""

from pathlib import Path

import numpy as np
import pytest

from . import generate
from .dataset import Dataset
from .recall import local_dimension, nearest

LAWS = {"sift-like": (generate.sift_like, 128), "bits": (generate.planted_bits, 96)}


def made(name: str, folder: Path, base_len: int) -> Dataset:
    law, columns = LAWS[name]
    generate.write(folder, law(), columns, base_len, 100)
    base, queries = (np.load(folder / f"{each}.npy") for each in ("base", "queries"))
    return Dataset(base, queries, "hamming" if name == "bits" else "l2")


@pytest.mark.parametrize("name", LAWS)
def test_fewer_are_the_first_and_queries_are_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "BLOCK_LEN", 64)
    many, few = made(name, tmp_path, 200), made(name, tmp_path, 70)
    assert np.array_equal(few.base, many.base[:70])
    assert np.array_equal(few.queries, many.queries)
    rows = np.vstack([many.base, many.queries])
    assert len(np.unique(rows, axis=0)) == 300  # no block repeats another


def test_sift_like_vectors_look_like_sift(tmp_path: Path) -> None:
    data = made("sift-like", tmp_path, 20_000)
    assert data.base.dtype == np.uint8
    assert 0.25 < (data.base == 0).mean() < 0.5
    norms = np.linalg.norm(data.base.astype(float), axis=1)
    assert np.quantile(norms, 0.01) > 480
    assert norms.max() < 530
    assert 9 < local_dimension(data, nearest(data, 100)) < 16


def test_bits_have_neighbours_much_nearer_than_strangers(tmp_path: Path) -> None:
    data = made("bits", tmp_path, 20_000)
    assert data.base.shape == (20_000, 96)
    assert 0.4 < np.unpackbits(data.base).mean() < 0.6
    near = np.bitwise_count(data.base[nearest(data, 1)[:, 0]] ^ data.queries).sum(axis=1)
    far = np.bitwise_count(data.base[:100] ^ data.queries).sum(axis=1)
    # Without the planted clusters it is 0.52.
    assert np.median(near) < 0.49 * np.median(far)
    assert 8 < local_dimension(data, nearest(data, 100)) < 25
