"""Removing, replacing and filtering: what searches find, and what is refused."""

import threading

import lanewise
import numpy as np
import pytest
from conftest import nearest, vectors
from numpy.typing import NDArray

KINDS = ["flat", "hnsw"]


@pytest.mark.parametrize("kind", KINDS)
def test_removed_vectors_are_not_found_and_numbering_goes_on(kind: str) -> None:
    x = vectors("f32", 600, 12)
    index = lanewise.Index(12, kind=kind).add(x)
    assert index.remove([3, 5, 5, 1000]) == 2
    assert len(index) == 598
    assert index.info()["removed"] == 2
    assert not {3, 5} & set(index.search(x[[3, 5]], 20)[0].ravel().tolist())
    gone = np.arange(0, 600, 2)
    assert index.remove(gone) == 300
    assert (len(index), index.info()["removed"]) == (298, 0)
    np.testing.assert_array_equal(index.ids(), [i for i in range(1, 600, 2) if i not in (3, 5)])
    index.add(x[0])
    assert index.ids()[-1] == 600
    assert index.search(x[0], 1)[0].tolist() == [600]


@pytest.mark.parametrize("kind", KINDS)
def test_upsert_replaces_and_adds(kind: str) -> None:
    x = vectors("f32", 100, 8)
    index = lanewise.Index(8, kind=kind).add(x[:60])
    assert index.upsert(x[[90, 91, 92]], [7, 8, 60]) is index
    assert len(index) == 61
    assert index.search(x[[90, 91, 92]], 1)[0].ravel().tolist() == [7, 8, 60]
    assert index.search(x[7], 1)[0][0] != 7
    with pytest.raises(lanewise.ArgumentError, match="names 7 twice"):
        index.upsert(x[:2], [7, 7])
    with pytest.raises(lanewise.ArgumentError, match="names 7 twice, or the index has it"):
        index.add(x[:1], [7])


@pytest.mark.parametrize("kind", KINDS)
def test_filters_of_every_form_agree_with_numpy(kind: str) -> None:
    x, q = vectors("f32", 3000, 16, seed=1), vectors("f32", 20, 16, seed=2)
    index = lanewise.Index(16, kind=kind).add(x)
    for share in (0.001, 0.1, 0.9):
        mask = np.random.default_rng(3).random(3000) < share
        allowed = np.flatnonzero(mask)
        forms = [mask, allowed, index.filter(mask), lambda ids, mask=mask: mask[ids]]
        k = min(5, len(allowed))
        expected = allowed[nearest(x[allowed], q, "l2", k)[0]]
        for form in forms:
            found = index.search(q, k, filter=form, ef_search=60)
            assert mask[found.ids].all()
            hits = [len(set(a) & set(b)) for a, b in zip(found.ids, expected, strict=True)]
            assert sum(hits) >= 0.95 * expected.size
            assert found.plan["exact" if kind == "flat" or share < 0.5 else "graph"] == 20
    assert len(index.filter(mask)) == mask.sum()


def test_bools_of_any_layout_are_filters() -> None:
    index = lanewise.Index(4).add(vectors("f32", 50, 4))
    wide = np.zeros((50, 3), bool)
    wide[::7, 1] = True
    assert len(index.filter(wide[:, 1])) == len(index.filter(lambda ids: wide[ids, 1])) == 8
    assert index.search(np.ones(4), 1, filter=wide[::-1, 1]).ids[0] % 7 == 0
    # Bytes that are neither 0 nor 1 are true to NumPy, too.
    assert len(index.filter(np.frombuffer(b"\2\x80\0\1\xff" * 10, bool))) == 40
    with pytest.raises(lanewise.ArgumentError, match="filter has masked elements"):
        index.filter(np.ma.array([1, 2], mask=[True, False]))
    with pytest.raises(lanewise.ArgumentError, match="filter, of type list, cannot be read"):
        index.filter([1, [2]])


def test_a_filter_bounds_the_number_of_results() -> None:
    x = vectors("f32", 50, 4)
    index = lanewise.Index(4).add(x)
    with pytest.warns(lanewise.FewerResultsWarning, match="the 3 vectors of the filter"):
        ids, _ = index.search(x, 10, filter=[1, 4, 9])
    assert ids.shape == (50, 3)
    with pytest.warns(lanewise.FewerResultsWarning):
        assert index.search(x[0], 2, filter=np.zeros(50, bool)).ids.shape == (0,)


def test_filters_that_are_none() -> None:
    x = vectors("f32", 50, 4)
    index = lanewise.Index(4).add(x)
    made = index.filter([1])
    with pytest.raises(lanewise.ArgumentError, match=r"one bool for each of the 50 vectors"):
        index.search(x, 1, filter=np.ones(49, bool))
    with pytest.raises(lanewise.DtypeError, match="the function must return bools"):
        index.search(x, 1, filter=lambda ids: ids)
    with pytest.raises(lanewise.DtypeError, match="filter must be integers"):
        index.search(x, 1, filter=[0.5])
    with pytest.raises(ZeroDivisionError):
        index.filter(lambda ids: 1 // 0)
    index.remove([1])
    with pytest.raises(lanewise.ArgumentError, match="another state of the index"):
        index.search(x, 1, filter=made)


def test_what_a_search_returns_says_how() -> None:
    x = vectors("f32", 2000, 8)
    index = lanewise.Index(8).add(x)
    found = index.search(x[:7], 3)
    ids, distances = found
    assert ids is found.ids
    assert distances is found.distances
    assert found.plan["graph"] == 7
    assert found.plan["distances"] > found.plan["hops"] > 7
    assert index.search(x[:7], 3, ef_search=2000).plan["exact"] == 7


@pytest.mark.parametrize(("code", "least"), [("i8", 9.5), ("i4", 9.5), ("bits", 8)])
def test_codes_find_what_the_vectors_say(code: str, least: float) -> None:
    x, q = vectors("f32", 4000, 64, seed=5), vectors("f32", 50, 64, seed=6)
    index = lanewise.Index(64, metric="cosine", dtype="f16", code=code).add(x)
    assert f"code {code}" in index.info()["code_report"]
    ids, _ = index.search(q, 10, ef_search=300)
    expected = nearest(x, q, "cosine", 10)[0]
    hits = [len(set(a) & set(b)) for a, b in zip(ids.tolist(), expected.tolist(), strict=True)]
    assert np.mean(hits) >= least
    with pytest.raises(lanewise.ArgumentError, match="oversample is not between"):
        index.search(q, oversample=0.5)
    with pytest.raises(lanewise.ArgumentError, match="epsilon is not between"):
        index.search(q, epsilon=-1)


def test_searches_go_on_while_vectors_come_and_go() -> None:
    x = vectors("f32", 4000, 16, seed=7)
    index = lanewise.Index(16).add(x[:2000])
    done, failures = threading.Event(), []

    def ask() -> None:
        def query(rows: NDArray[np.int64]) -> None:
            found = index.search(x[rows], 5, ef_search=100, num_threads=1)
            assert found.ids.shape == (len(rows), 5)
            # Vectors that are never removed are found, each at distance 0.
            assert (found.distances[:, 0] == 0).all()

        try:
            while not done.is_set():
                query(np.arange(1, 2000, 100))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for start in range(2000, 4000, 500):
            index.remove(np.arange(start - 2000, start - 1500, 2))
            index.add(x[start : start + 500], np.arange(start, start + 500))
            index.upsert(x[:100:2], np.arange(10**6, 10**6 + 50))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(index) == 2000 - 1000 + 2000 + 50
