"""Searches of tables: order, pages, figures, words and vectors together, profiles."""

from collections.abc import Iterator
from pathlib import Path

import lanewise
import numpy as np
import pytest
from conftest import nearest, vectors
from lanewise import Table

DIM = 6
COUNT = 300
X = vectors("f32", COUNT, DIM)
Y = vectors("f32", COUNT, DIM, seed=1)
RNG = np.random.default_rng(7)
PRICES = RNG.integers(0, 20, COUNT).tolist()
COLORS = RNG.choice(["red", "green", "blue"], COUNT).tolist()
SCHEMA = {
    "title": "text",
    "color": "keyword",
    "price": "integer",
    "x": lanewise.vector(DIM),
    "y": lanewise.vector(DIM, "cosine"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    documents = [
        {"title": f"{color} thing", "color": color} | ({"price": price} if price else {})
        for price, color in zip(PRICES, COLORS, strict=True)
    ]
    with Table.create(tmp_path_factory.mktemp("search") / "t", SCHEMA) as table:
        for first in range(0, COUNT, 100):
            part = slice(first, first + 100)
            table.put_many(
                documents[part],
                ids=[f"{number:03}" for number in range(first, first + 100)],
                vectors={"x": X[part], "y": Y[part]},
            )
            table.flush()
        yield table


def test_order(table: Table) -> None:
    for descending in (False, True):
        found = table.search(sort={"price": "desc" if descending else "asc"}, k=COUNT)
        keys = [
            (not price, -price if descending else price, f"{number:03}")
            for number, price in enumerate(PRICES)
        ]
        assert found.ids == [key for *_, key in sorted(keys)]
        assert (found.total, found.total_exact) == (COUNT, True)
    first = table.search(sort=[{"price": {"order": "asc", "missing": "_first"}}, "color"], k=1)[0]
    assert first.document is not None
    assert "price" not in first.document
    assert first.sort[1:] == ["blue", first.id]


def test_pages_meet_every_document_once(table: Table) -> None:
    sort = ["color", {"price": "desc"}]
    whole = table.search(sort=sort, k=COUNT).ids
    pages = [table.search(sort=sort, k=70, from_=first).ids for first in range(0, COUNT, 70)]
    assert [key for page in pages for key in page] == whole
    after, ids = None, []
    while True:
        page = table.search(sort=sort, k=70, after=after)
        if not page:
            break
        ids += page.ids
        assert len(ids) <= COUNT
        after = page[-1].sort
    assert ids == whole
    q = X[5] + 1
    all_of_it = table.search(vector={"x": q}, k=60, exact=True).ids
    paged = [table.search(vector={"x": q}, k=20, from_=n, exact=True).ids for n in (0, 20, 40)]
    assert [key for page in paged for key in page] == all_of_it


def test_figures(table: Table) -> None:
    aggs = {
        "colors": {"terms": {"field": "color"}, "aggs": {"price": {"stats": {"field": "price"}}}},
        "dear": {"filter": {"range": {"field": "price", "range": {"gte": 10}}}},
    }
    found = table.search(filter={"price": {"gt": 3}}, aggs=aggs, k=0)
    assert len(found) == 0
    chosen = [(c, p) for c, p in zip(COLORS, PRICES, strict=True) if p > 3]
    assert found.total == len(chosen)
    for bucket in found.aggs["colors"]["buckets"]:
        prices = [price for color, price in chosen if color == bucket["key"]]
        assert bucket["doc_count"] == len(prices)
        assert bucket["price"]["sum"] == sum(prices)
        assert (bucket["price"]["min"], bucket["price"]["max"]) == (min(prices), max(prices))
    assert found.aggs["dear"]["doc_count"] == sum(price >= 10 for _, price in chosen)
    assert table.search(k=1).aggs == {}


def test_words_and_vectors_are_fused(table: Table) -> None:
    """Reciprocal rank, by hand."""
    q = Y[9]
    by_vector = [f"{n:03}" for n in nearest(Y, q[None], "cosine", 100)[0][0]]
    by_words = table.search("red", k=100).ids
    assert all(COLORS[int(key)] == "red" for key in by_words)
    for weights in ([1, 1], [1, 3]):
        scores: dict[str, float] = {}
        for weight, ranking in zip(weights, (by_words, by_vector), strict=True):
            for rank, key in enumerate(ranking, 1):
                scores[key] = scores.get(key, 0) + weight / (60 + rank)
        fusion = {"rrf": {"weights": weights}}
        found = table.search("red", vector={"y": q}, k=20, fusion=fusion, exact=True)
        assert found.distances is None
        best = sorted(scores.values(), reverse=True)[:20]
        np.testing.assert_allclose(found.scores, best, rtol=1e-5)
        for key, score in zip(found.ids, found.scores, strict=True):
            assert scores[key] == pytest.approx(score, rel=1e-5)
    mean = table.search("red", vector={"y": q}, k=5, fusion="arithmetic_mean")
    assert mean.scores[0] <= 1
    assert (
        table.search("red", vector={"y": q}, k=5).ids
        == table.search("red", vector={"y": q}, k=5, fusion="rrf").ids
    )
    two = table.search(vector={"x": X[3], "y": Y[3]}, k=1)
    assert two.ids == ["003"]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_always_as_many_as_there_are(table: Table, share: float) -> None:
    chosen = sorted(f"{n:03}" for n in RNG.permutation(COUNT)[: int(share * COUNT)])
    for k in (1, 5, COUNT, 2 * COUNT):
        found = table.search(vector={"x": X[0]}, k=k, filter={"ids": chosen})
        assert len(found) == min(k, len(chosen))
        assert set(found.ids) <= set(chosen)
        assert found.distances is not None
        assert (np.diff(found.distances) >= 0).all()


def test_profiles_say_how(table: Table) -> None:
    found = table.search("thing", vector={"x": X[0]}, filter={"color": "red"}, profile=True)
    assert found.profile is not None
    # The head is empty.
    *segments, head = found.profile["segments"]
    assert len(segments) == 3
    assert (head["filter"]["rows"], head["vectors"]) == (0, [])
    for segment in segments:
        assert segment["filter"]["rows"] > 0
        (one,) = segment["vectors"]
        assert one["field"] == "x"
        assert one["plan"] in ("exact", "graph", "filtered_graph")
        assert one["visited"] > 0
        assert one["task"]["stolen"] in ("no", "near", "across")
        assert segment["documents"]
    assert table.search("thing").profile is None


def test_inexact_totals_find_the_same(table: Table) -> None:
    exact = table.search("red", k=5)
    quick = table.search("red", k=5, exact_total=False)
    assert quick.ids == exact.ids
    assert quick.total <= exact.total
    assert exact.total == COLORS.count("red")


def test_documents_are_those_of_the_search(tmp_path: Path) -> None:
    with Table.create(tmp_path / "t", SCHEMA) as table:
        table.put({"id": "a", "title": "red", "x": X[0]})
        found = table.search("red")
        table.put({"id": "a", "title": "blue"})
        assert found.documents == [{"id": "a", "title": "red"}]
        assert table.search("red").ids == []
        (one,) = table.search("blue")
        assert one.document is not None
        assert (one.document.version, one.document.seq) == (2, 2)


def test_nested_objects_have_vectors_of_their_own(tmp_path: Path) -> None:
    schema = {"passages": "nested", "passages.lang": "keyword", "passages.x": lanewise.vector(DIM)}
    languages = RNG.choice(["de", "en"], (50, 4))
    passages = X[:200].reshape(50, 4, DIM)
    with Table.create(tmp_path / "t", schema) as table:
        table.put_many(
            [
                {"passages": [{"lang": c, "x": x} for c, x in zip(a, b.tolist(), strict=True)]}
                for a, b in zip(languages.tolist(), passages, strict=True)
            ],
            ids=[f"{number:02}" for number in range(50)],
        )
        assert len(table) == 50
        german = {"term": {"field": "passages.lang", "value": "de"}}
        for q in Y[:20]:
            distances = ((passages - q) ** 2).sum(axis=2)
            distances[languages != "de"] = np.inf
            best = np.argsort(distances.min(axis=1), kind="stable")[:5]
            near = {
                "field": "passages.x",
                "vector": q.tolist(),
                "k": 5,
                "exact": True,
                "filter": {"nested": {"path": "passages", "query": german}},
            }
            query = {"nested": {"path": "passages", "query": {"nearest": near}}}
            assert table.search(query=query, k=5).ids == [f"{number:02}" for number in best]
        both = {"nested": {"path": "passages", "query": {"passages.lang": ["de"]}}}
        expected = [f"{number:02}" for number in range(50) if "de" in languages[number]]
        assert sorted(table.search(filter=both, k=50).ids) == expected
        with pytest.raises(lanewise.ArgumentError, match="within a nested query of path"):
            table.search(query={"nearest": near})
