"""Searches beyond the nearest k, and stored vectors, against NumPy; and what is refused."""

import threading
from collections.abc import Callable
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import METRICS, SPACES, distances, nearest, vectors
from lanewise import ArgumentError, DtypeError, Index

KINDS = ["flat", "hnsw", "ivf"]


@pytest.mark.parametrize(("dtype", "metric"), SPACES)
@pytest.mark.parametrize("kind", KINDS)
def test_range_search(kind: str, dtype: str, metric: str) -> None:
    x, q = vectors(dtype, 400, 16, seed=1), vectors(dtype, 40, 16, seed=2)
    index = Index(16, metric=metric, dtype=dtype, kind=kind).add(x)
    ids, found = index.search(q, 400)
    radius = float(found[:, 30].mean())
    within = index.range_search(q, radius)
    assert (within.lims.dtype, within.ids.dtype) == (np.int64, np.int64)
    assert within.distances.dtype == np.float32
    assert within.lims[0] == 0
    assert within.lims[-1] == len(within.ids) == len(within.distances) > 40
    assert len(within) == 40
    for row, (near, far) in enumerate(within):
        expected = found[row] <= np.float32(radius)
        np.testing.assert_array_equal(near, ids[row][expected])
        np.testing.assert_array_equal(far, found[row][expected])
    # By definition, but for what rounding may put on either side.
    exact = distances(x, q, metric)
    assert (exact <= radius - 1e-5).sum() <= len(within.ids) <= (exact <= radius + 1e-5).sum()
    np.testing.assert_array_equal(within[-1][0], within.ids[within.lims[-2] :])
    assert sum(within.plan[plan] for plan in ("exact", "graph", "lists")) == 40
    three = index.range_search(q, radius, limit=3, num_threads=3)
    for one, all_within in zip(three, within, strict=True):
        np.testing.assert_array_equal(one[0], all_within[0][:3])
    with pytest.raises(IndexError):
        within[40]


def test_range_search_of_one_query_and_among_some() -> None:
    index = Index(1, kind="flat").add([[0], [1], [2], [3], [4]], [50, 40, 30, 20, 10])
    ((ids, found),) = index.range_search([1], 1)
    assert (ids.tolist(), found.tolist()) == ([40, 50, 30], [0, 1, 1])
    among = index.range_search([[1], [4]], 4, filter=lambda ids: ids % 20 == 10)
    assert [ids.tolist() for ids, _ in among] == [[50, 30], [10, 30]]
    assert index.range_search([1], -1).ids.shape == (0,)
    assert index.range_search([1], np.inf, limit=2).ids.tolist() == [40, 50]
    assert len(Index(1).range_search([[1], [2]], 1).ids) == 0


def test_range_search_of_products_goes_by_their_negation() -> None:
    index = Index(1, "ip", kind="flat").add([[0.5], [0.8], [0.9]])
    assert index.range_search([1], -0.8).ids.tolist() == [2, 1]


def test_range_search_walks_the_graph_while_that_is_less() -> None:
    x = vectors("f32", 8000, 12, seed=3)
    index, flat = Index(12).add(x), Index(12, kind="flat").add(x)
    radius = float(flat.search(x[:50], 100)[1][:, -1].mean())
    exact, within = (each.range_search(x[:50], radius, ef_search=200) for each in (flat, index))
    assert within.plan["graph"] >= 45
    assert within.plan["distances"] < exact.plan["distances"] / 2
    hits = [np.isin(a, b).sum() for (a, _), (b, _) in zip(exact, within, strict=True)]
    assert sum(hits) > 0.98 * len(exact.ids)
    assert (within.distances <= np.float32(radius)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", METRICS)
def test_get(dtype: str, kind: str) -> None:
    x = vectors(dtype, 300, 12)
    index = Index(12, dtype=dtype, kind=kind).add(x)
    index.remove([5]).bit_length()
    got = index.get([7, 0, 7, 299])
    np.testing.assert_array_equal(got, x[[7, 0, 7, 299]])
    assert got.dtype == x.dtype
    assert index.get(7).shape == (12,)
    assert index.get(np.array([], np.int64)).shape == (0, 12)
    for missing in (5, 300, -1, 2**40):
        with pytest.raises(KeyError, match=f"ids names {missing}, which is not there") as raised:
            index.get([7, missing])
        assert isinstance(raised.value, lanewise.IdError)
        assert raised.value.argument == "ids"
    own = Index(12, dtype=dtype, kind=kind).add(x, np.arange(300) * -(2**33))
    np.testing.assert_array_equal(own.get([-(2**34), 0]), x[[2, 0]])
    own.upsert(x[9], [0])
    np.testing.assert_array_equal(own.get(0), x[9])


def test_get_gives_what_is_stored(tmp_path: Any) -> None:
    x = vectors("f32", 50, 10) / np.float32(7)
    cosine = Index(10, "cosine").add(x).get(np.arange(50))
    np.testing.assert_allclose(cosine, x / np.linalg.norm(x, axis=1)[:, None], rtol=1e-6)
    half = Index(10, dtype="f16").add(x)
    np.testing.assert_array_equal(half.get(np.arange(50)), x.astype(np.float16).astype(np.float32))
    half.save(tmp_path / "half")
    np.testing.assert_array_equal(Index.open(tmp_path / "half").get(3), half.get(3))
    byte = np.arange(30, dtype=np.uint8).reshape(3, 10)
    got = Index(10, dtype="u8").add(byte).get([2, 1])
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, byte[[2, 1]])


@pytest.mark.parametrize(("dtype", "metric"), SPACES)
def test_search_by_id(dtype: str, metric: str) -> None:
    x = vectors(dtype, 300, 16, seed=4)
    x[20:40] = x[0]
    index = Index(16, metric=metric, dtype=dtype, kind="flat").add(x)
    ids, found = index.search_by_id([3, 0, 39], 6)
    assert ids.shape == found.shape == (3, 6)
    _, expected = nearest(x, x[[3, 0, 39]], metric, 300)
    for own, row, got, exact in zip((3, 0, 39), ids, found, expected, strict=True):
        assert own not in row
        if metric == "ip":
            # Others may be nearer than itself.
            own_place = np.argmin(abs(exact - distances(x, x[own : own + 1], metric)[0, own]))
            exact = np.delete(exact, own_place)
        else:
            exact = exact[1:]
        np.testing.assert_allclose(got, exact[:6], atol=1e-5, rtol=1e-5)
    assert index.search_by_id(3, 6).ids.tolist() == ids[0].tolist()
    assert index.search_by_id(np.int32(3), 6).ids.shape == (6,)


def test_search_by_id_gives_all_others() -> None:
    index = Index(1).add([[0], [1], [3], [7]], [40, 30, 20, 10])
    with pytest.warns(lanewise.FewerResultsWarning, match="the 3 vectors of the index, itself"):
        ids, _ = index.search_by_id([40, 10], 9)
    assert ids.tolist() == [[30, 20, 10], [20, 30, 40]]
    with pytest.warns(lanewise.FewerResultsWarning, match="the 1 vectors of the filter, itself"):
        ids, found = index.search_by_id([40, 10], 2, filter=[40, 30])
    assert ids.tolist() == [[30, -1], [30, 40]]
    assert found.tolist() == [[1, np.inf], [36, 49]]
    with pytest.warns(lanewise.FewerResultsWarning):
        assert Index(1).add([5]).search_by_id(0).ids.shape == (0,)
    with pytest.raises(lanewise.IdError, match="41"):
        index.search_by_id([40, 41])


def key_of(i: int) -> str:
    return f"group {i * i % 11}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_group", [1, 3, 1000])
@pytest.mark.parametrize(
    "form",
    [
        lambda n: key_of,
        lambda n: {i: key_of(i) for i in range(n)},
        lambda n: [*map(key_of, range(n))],
    ],
)
def test_search_groups(form: Callable[[int], Any], per_group: int, kind: str) -> None:
    x, q = vectors("f32", 500, 8, seed=5), vectors("f32", 9, 8, seed=6)
    index = Index(8, kind=kind).add(x)
    index.remove([1, 2, 3])
    groups = form(500)
    kept = np.setdiff1d(np.arange(500), [1, 2, 3])
    order, found = nearest(x[kept], q, "l2", len(kept))
    order = kept[order]
    answers = index.search_groups(q, 4, groups, per_group=per_group, ef_search=500)
    assert len(answers) == 9
    for row, answer in enumerate(answers):
        members: dict[str, list[int]] = {}
        for place, i in enumerate(order[row]):
            members.setdefault(key_of(i), []).append(place)
        expected = list(members.items())[:4]
        assert [one.key for one in answer] == [key for key, _ in expected]
        for one, (_, places) in zip(answer, expected, strict=True):
            places = places[:per_group]
            np.testing.assert_array_equal(one.ids, order[row][places])
            np.testing.assert_array_equal(one.distances, found[row][places].astype(np.float32))
    (alone,) = [index.search_groups(q[0], 4, groups, per_group=per_group, ef_search=500)]
    assert [one.key for one in alone] == [one.key for one in answers[0]]


def test_search_groups_may_find_fewer_and_among_some() -> None:
    index = Index(1).add([[0], [1], [2], [3]])
    found = index.search_groups([0], 5, ["a", "a", "b", None], per_group=2)
    assert [(one.key, one.ids.tolist()) for one in found] == [
        ("a", [0, 1]),
        ("b", [2]),
        (None, [3]),
    ]
    found = index.search_groups([0], 5, np.array([7, 7, 8, 9]), filter=[1, 3])
    assert [(key, ids.tolist(), far.tolist()) for key, ids, far in found] == [
        (7, [1], [1]),
        (9, [3], [9]),
    ]
    assert Index(1).search_groups([0], 5, ["a"]) == []
    assert Index(1).search_groups([[0], [1]], 5, {}) == [[], []]


def test_groups_that_are_none() -> None:
    index = Index(1).add([[0], [1], [2]])
    with pytest.raises(ZeroDivisionError):
        index.search_groups([0], 1, lambda i: 1 // 0)
    with pytest.raises(KeyboardInterrupt):
        index.search_groups([0], 1, lambda i: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(ArgumentError, match="2 keys, none of them for id 2") as raised:
        index.search_groups([0], 3, [1, 2])
    assert raised.value.argument == "groups"
    with pytest.raises(ArgumentError, match="no key for id 1"):
        index.search_groups([0], 3, {0: 1, 2: 2})
    with pytest.raises(DtypeError, match="cannot be hashed"):
        index.search_groups([0], 3, lambda i: [i])
    with pytest.raises(DtypeError, match="groups must be a function"):
        index.search_groups([0], 3, 7)  # type: ignore[arg-type]
    # The function may search, and change, the index that is searched.
    asked: list[int] = []

    def busy(i: int) -> int:
        asked.append(i)
        index.add([5])
        return int(index.search([0], 1).ids[0])

    found = index.search_groups([0], 2, busy, per_group=2)
    assert [(one.key, one.ids.tolist()) for one in found] == [(0, [0, 1])]
    assert sorted(asked) == [0, 1, 2]
    assert len(index) == 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [1, 0.3])
def test_pages_have_each_vector_once_whatever_changes(kind: str, share: float) -> None:
    x = vectors("f32", 3000, 8, seed=7)
    index = Index(8, kind=kind).add(x)
    mask = np.random.default_rng(8).random(3000) < share
    order = np.flatnonzero(mask)[nearest(x[mask], x[:1], "l2", mask.sum())[0][0]]
    pages = index.pages(x[0], 70, filter=mask, ef_search=200, nprobe=100)
    assert iter(pages) is pages
    first = next(pages)
    assert first.ids.shape == first.distances.shape == (70,)
    assert np.isin(first.ids, order[:70]).mean() > 0.95
    index.remove(np.arange(2000))
    index.add(x[:500], np.arange(5000, 5500))
    rest = list(pages)
    assert all((np.diff(page.distances) >= 0).all() for page in rest)
    read = np.concatenate([page.ids for page in [first, *rest]])
    np.testing.assert_array_equal(np.sort(read), np.sort(order))
    assert {len(page.ids) for page in rest[:-1]} == {70}
    assert next(pages, None) is None
    if kind == "flat":
        np.testing.assert_array_equal(read, order)


def test_pages_can_be_shared_by_threads() -> None:
    x = vectors("f32", 2000, 8, seed=9)
    pages = Index(8).add(x).pages(x[0], 7)
    parts: list[list[int]] = [[], [], []]

    def read(part: list[int]) -> None:
        for page in pages:
            part.extend(page.ids.tolist())

    threads = [threading.Thread(target=read, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(parts[0] + parts[1] + parts[2]) == list(range(2000))


X = vectors("f32", 30, 8)
REFUSED: dict[str, tuple[Callable[[Index], Any], type[Exception], str, str]] = {
    "NaN": (lambda i: i.range_search(X, np.nan), ArgumentError, "radius", "not a number"),
    "no radius": (lambda i: i.range_search(X, None), DtypeError, "radius", "not None"),
    "radius text": (lambda i: i.range_search(X, "1"), DtypeError, "radius", "not str"),
    "limit": (lambda i: i.range_search(X, 1, limit=0), ArgumentError, "limit", "limit=0: use at"),
    "limit sign": (lambda i: i.range_search(X, 1, limit=-1), ArgumentError, "limit", "negative"),
    "q": (lambda i: i.range_search(X[:, :3], 1), ArgumentError, "q", "dim=8"),
    "effort": (lambda i: i.range_search(X, 1, nprobe=0), ArgumentError, "nprobe", "nprobe=0"),
    "threads": (
        lambda i: i.range_search(X, 1, num_threads=0),
        ArgumentError,
        "num_threads",
        "num_threads=0",
    ),
    "k": (lambda i: i.search_by_id(3, 0), ArgumentError, "k", "k=0"),
    "no ids": (lambda i: i.search_by_id([]), ArgumentError, "ids", "ids is empty"),
    "ids floats": (lambda i: i.search_by_id([1.0]), DtypeError, "ids", "must be integers"),
    "id float": (lambda i: i.get(1.0), ArgumentError, "ids", "shape"),
    "id bool": (lambda i: i.get(True), ArgumentError, "ids", "shape"),
    "ids text": (lambda i: i.get(["a"]), DtypeError, "ids", "ids has dtype"),
    "id huge": (lambda i: i.get(2**70), DtypeError, "ids", "object"),
    "groups": (lambda i: i.search_groups(X, 0, X), ArgumentError, "k", "k=0"),
    "per_group": (
        lambda i: i.search_groups(X, 1, X, per_group=0),
        ArgumentError,
        "per_group",
        "per_group=0",
    ),
    "page_size": (lambda i: i.pages(X[0], 0), ArgumentError, "page_size", "page_size=0: use"),
    "queries": (lambda i: i.pages(X), ArgumentError, "q", "30 queries: pages are of one"),
    "page NaN": (lambda i: i.pages(X[0] * np.nan), ArgumentError, "q", "NaN"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_refused(kind: str, case: str) -> None:
    call, error, argument, message = REFUSED[case]
    with pytest.raises(error, match=message) as raised:
        call(Index(8, kind=kind).add(X))
    assert type(raised.value) is error
    assert raised.value.argument == argument  # type: ignore[attr-defined]


def test_unknown_keywords_are_pythons() -> None:
    index = Index(8).add(X)
    for call, args in [
        (index.range_search, (X, 1)),
        (index.search_by_id, (1,)),
        (index.search_groups, (X, 1, key_of)),
        (index.pages, (X[0],)),
    ]:
        with pytest.raises(
            TypeError, match=rf"{call.__name__}\(\) got an unexpected .* 'efsearch'"
        ):
            call(*args, efsearch=3)  # type: ignore[operator]


def test_filters_of_another_state_are_refused() -> None:
    index = Index(8).add(X)
    made = index.filter([1])
    index.remove([2])
    for call in (
        lambda: index.range_search(X, 1, filter=made),
        lambda: index.search_by_id(1, filter=made),
        lambda: index.search_groups(X, 1, key_of, filter=made),
        lambda: index.pages(X[0], filter=made),
    ):
        with pytest.raises(ArgumentError, match="another state of the index"):
            call()
