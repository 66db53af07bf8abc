"""The cache and what is kept in it: damage is found and made good, stopped work goes on."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lanewise.demo import cache, embed
from lanewise.demo.errors import DemoError
from lanewise.demo.measure import recall
from lanewise.demo.model import F32
from numpy.typing import NDArray


def flip(path: Path) -> None:
    blob = bytearray(path.read_bytes())
    blob[-1] ^= 1
    path.write_bytes(blob)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lose_digest(path: Path) -> None:
    path.with_name(path.name + ".sha256").unlink()


def spoil_digest(path: Path) -> None:
    path.with_name(path.name + ".sha256").write_bytes(b"\xff\xfe")


DAMAGES = [flip, cut, empty, lose_digest, spoil_digest, Path.unlink]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    cache.write(tmp_path / "new" / "a", b"first")
    cache.write(tmp_path / "new" / "a", b"second")
    assert cache.read(tmp_path / "new" / "a") == b"second"
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["a", "a.sha256"], "no temporary file stays"
    digest, name = (tmp_path / "new" / "a.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(b"second").hexdigest(), "a")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_counts_as_absent(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    cache.write_array(tmp_path / "v.npy", np.ones((3, 2), np.float32))
    damage(tmp_path / "v.npy")
    assert cache.read_array(tmp_path / "v.npy", (3, 2)) is None


def test_an_array_of_another_shape_or_type_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    cache.write_array(path, np.ones((3, 2), np.float32))
    assert cache.read_array(path, (2, 3)) is None
    cache.write(path, b"whole, but no array")
    assert cache.read_array(path, (3, 2)) is None


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DemoError, match="--cache"):
        cache.write(tmp_path / "file" / "a", b"")


class Stub:
    """An encoder whose vectors tell the tokens; stops after `allowed` texts."""

    dim = 2

    def __init__(self, allowed: int = sys.maxsize) -> None:
        self.allowed = allowed
        self.texts_len = 0

    def __call__(self, tokens: NDArray[np.int64]) -> F32:
        self.texts_len += len(tokens)
        if self.texts_len > self.allowed:
            raise KeyboardInterrupt
        return np.stack([tokens.sum(axis=1), tokens[:, 0]], axis=1).astype(np.float32)


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    monkeypatch.setattr(embed, "CHUNK_LEN", 10)
    monkeypatch.setattr(embed, "BATCH_TOKENS_MAX", 12)
    monkeypatch.setattr(embed, "threads_len", lambda: 1)
    random = np.random.Generator(np.random.PCG64(5))
    return [random.integers(0, 99, n).tolist() for n in random.integers(2, 20, 45)]


def expected(tokens: list[list[int]]) -> F32:
    return np.array([(sum(ids), ids[0]) for ids in tokens], np.float32)


def test_vectors_come_in_the_order_of_the_texts(tokens: list[list[int]], tmp_path: Path) -> None:
    np.testing.assert_array_equal(embed.embed(Stub(), tokens, tmp_path, "n"), expected(tokens))
    kept = embed.cached(tmp_path, "n", (45, 2))
    assert kept is not None
    np.testing.assert_array_equal(kept, expected(tokens))
    assert len(list(tmp_path.iterdir())) == 2, "the parts are gone"


def test_stopped_work_goes_on(tokens: list[list[int]], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        embed.embed(Stub(allowed=35), tokens, tmp_path, "n")
    assert embed.cached(tmp_path, "n", (45, 2)) is None
    second = Stub()
    np.testing.assert_array_equal(embed.embed(second, tokens, tmp_path, "n"), expected(tokens))
    assert second.texts_len == 15, "three chunks of ten were kept"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_made_again(
    tokens: list[list[int]], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        embed.embed(Stub(allowed=35), tokens, tmp_path, "n")
    damage(tmp_path / "vectors-n-part0001.npy")
    second = Stub()
    np.testing.assert_array_equal(embed.embed(second, tokens, tmp_path, "n"), expected(tokens))
    assert second.texts_len == 25


def test_batches_hold_one_length_and_few_tokens(tokens: list[list[int]]) -> None:
    lengths = np.array([len(ids) for ids in tokens])
    order = np.argsort(lengths, kind="stable")
    batches = list(embed.batches(order, lengths))
    np.testing.assert_array_equal(np.concatenate(batches), order)
    for batch in batches:
        assert len(set(lengths[batch])) == 1
        assert len(batch) == 1 or lengths[batch].sum() <= 12


def test_key_tells_texts_and_models_apart() -> None:
    keys = {embed.key(*a) for a in ((["a", "b"], "m"), (["ab"], "m"), (["a", "b"], "n"))}
    assert len(keys) == 3


def test_recall_counts_neighbours_in_any_order() -> None:
    found = np.array([[3, 1, 2], [7, 8, -1]])
    assert recall(found, np.array([[1, 2, 3], [7, 9, 6]])) == pytest.approx(4 / 6)
