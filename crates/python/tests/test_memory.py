"""Memory that is predicted, and limits to it."""

import lanewise
import numpy as np
import pytest

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((3000, 32), dtype=np.float32)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
@pytest.mark.parametrize("ids", [False, True])
def test_what_an_add_takes_is_known_before(kind, ids):
    index = lanewise.Index(32, kind=kind, m=8)
    for first in (0, 2000):
        x = X[first : first + 2000]
        need = index.predict_add(len(x), ids=ids)
        index.add(x, ids=np.arange(first, first + len(x)) * 2 if ids else None)
        assert need["memory_bytes"] == index.info()["memory_bytes"]
        assert need["peak_bytes"] >= need["memory_bytes"]


def test_a_limit_is_refused_with_the_numbers_and_nothing_lost():
    index = lanewise.Index(32, memory_limit=400_000)
    index.add(X[:500])
    peak = index.predict_add(2500)["peak_bytes"]
    with pytest.raises(MemoryError, match=f"memory_limit=400000.*{peak} bytes"):
        index.add(X[500:])
    assert len(index) == 500
    assert index.memory_limit == 400_000
    index.memory_limit = peak
    assert len(index.add(X[500:])) == 3000
    index.memory_limit = None
    assert index.memory_limit is None


def test_removed_vectors_stay_where_a_copy_has_no_room():
    index = lanewise.Index(32).add(X)
    index.memory_limit = index.info()["memory_bytes"] + 1
    index.remove(np.arange(1000))
    assert (len(index), index.info()["removed"]) == (2000, 1000)
    index.memory_limit = None
    index.repair()
    assert (len(index), index.info()["removed"]) == (2000, 0)


@pytest.mark.parametrize("options", [{"kind": "hnsw"}, {"kind": "ivf", "code": "bits"}])
def test_what_opening_takes_is_known_before(tmp_path, options):
    path = tmp_path / "index.lw"
    index = lanewise.Index(32, **options).add(X)
    index.remove([1, 2, 3])
    index.save(path)
    need = lanewise.Index.predict_open(path)
    opened = lanewise.Index.open(path, memory_limit=need["peak_bytes"])
    assert need["file_bytes"] == path.stat().st_size
    assert need["memory_bytes"] == pytest.approx(opened.info()["memory_bytes"], rel=0.05, abs=1000)
    assert opened.memory_limit == need["peak_bytes"]
    with pytest.raises(MemoryError, match="raise the limit"):
        lanewise.Index.open(path, memory_limit=need["peak_bytes"] - 1)


@pytest.mark.parametrize("wrong", [-1, 1.5, "2GB"])
def test_wrong_limits_are_named(wrong):
    with pytest.raises((lanewise.ArgumentError, lanewise.DtypeError), match="memory_limit"):
        lanewise.Index(4, memory_limit=wrong)
