"""Filters and queries in the short form: what they mean, against Python's own evaluation."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lanewise
import numpy as np
import pytest
from lanewise import ArgumentError, DtypeError, Table
from lanewise.filters import to_query

SCHEMA = {
    "title": "text",
    "notes": "text",
    "color": "keyword",
    "price": "float",
    "v": lanewise.vector(3),
}
FIELDS = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in SCHEMA.items()}
WORDS = ["red", "blue", "shoe", "boot", "old"]
COLORS = ["red", "blue", "dark green"]


def documents(seed: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made = []
    for number in range(count):
        document: dict[str, Any] = {"id": str(number), "v": [number, 1, 0]}
        if rng.random() < 0.8:
            document["title"] = " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
        if rng.random() < 0.5:
            document["notes"] = rng.choice(WORDS)
        if rng.random() < 0.8:
            document["color"] = rng.choice(COLORS)
        if rng.random() < 0.8:
            document["price"] = rng.choice([0.1, 1, 1.5, 2, 30])
        if rng.random() < 0.8:
            document["size"] = rng.choice([1, 2.5, "xl", True])
        made.append(document)
    return made


MADE = documents(1, 200)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with Table.create(tmp_path_factory.mktemp("filters") / "t", SCHEMA) as table:
        table.put_many(MADE[:120])
        table.flush()
        table.put_many(MADE[120:])
        yield table


def words(document: dict[str, Any], field: str) -> set[str]:
    return set(document.get(field, "").split())


MEANINGS: list[tuple[Any, Callable[[dict[str, Any]], bool]]] = [
    ({}, lambda d: True),
    ({"color": "red"}, lambda d: d.get("color") == "red"),
    ({"color": {"eq": "dark green"}}, lambda d: d.get("color") == "dark green"),
    ({"color": ["red", "blue"]}, lambda d: d.get("color") in ("red", "blue")),
    ({"color": {"in": ("red",)}}, lambda d: d.get("color") == "red"),
    ({"color": {"in": []}}, lambda d: False),
    ({"color": {"ne": "red"}}, lambda d: d.get("color") != "red"),
    ({"color": None}, lambda d: "color" not in d),
    ({"color": {"exists": True}}, lambda d: "color" in d),
    ({"color": {"exists": False}}, lambda d: "color" not in d),
    ({"color": {"prefix": "dark"}}, lambda d: d.get("color") == "dark green"),
    ({"color": {"wildcard": "*e*d*"}}, lambda d: d.get("color") == "red"),
    ({"price": 1}, lambda d: d.get("price") == 1),
    ({"price": np.float64(0.1)}, lambda d: d.get("price") == 0.1),
    ({"price": np.array([1.5, 2])}, lambda d: d.get("price") in (1.5, 2)),
    ({"price": {"lt": 2}}, lambda d: d.get("price", 9) < 2),
    ({"price": {"gte": 1, "lt": 2}}, lambda d: 1 <= d.get("price", 9) < 2),
    ({"price": {"gt": 1, "ne": 2}}, lambda d: d.get("price", 0) > 1 and d["price"] != 2),
    (
        {"price": {"lte": 1.5}, "color": "red"},
        lambda d: d.get("price", 9) <= 1.5 and d.get("color") == "red",
    ),
    ({"title": "red shoe"}, lambda d: words(d, "title") >= {"red", "shoe"}),
    ({"title": ["red", "boot"]}, lambda d: bool(words(d, "title") & {"red", "boot"})),
    ({"title": []}, lambda d: False),
    ({"title": {"match": "RED"}}, lambda d: "red" in words(d, "title")),
    ({"title": {"phrase": "red shoe"}}, lambda d: "red shoe" in d.get("title", "")),
    ({"title": {"ne": "red"}}, lambda d: "red" not in words(d, "title")),
    ({"size": 2.5}, lambda d: d.get("size") == 2.5),
    ({"size": {"eq": "xl"}}, lambda d: d.get("size") == "xl"),
    ({"ids": ["3", "5", "x"]}, lambda d: d["id"] in ("3", "5")),
    (
        {"ids": ["3", "5"], "title": {"exists": False}},
        lambda d: d["id"] in ("3", "5") and "title" not in d,
    ),
    ({"term": {"field": "color", "value": "red"}}, lambda d: d.get("color") == "red"),
    (
        {"bool": {"should": [{"color": "red"}, {"price": {"gt": 2}}]}},
        lambda d: d.get("color") == "red" or d.get("price", 0) > 2,
    ),
    (
        {"bool": {"must_not": {"color": "red"}}, "price": {"gt": 0.5}},
        lambda d: d.get("color") != "red" and d.get("price", 0) > 0.5,
    ),
    (
        {
            "bool": {
                "should": [{"color": "red"}, {"price": 30}, {"title": "old"}],
                "minimum_should_match": 2,
            }
        },
        lambda d: (
            (d.get("color") == "red") + (d.get("price") == 30) + ("old" in words(d, "title")) >= 2
        ),
    ),
    ({"constant": {"query": {"color": "red"}, "score": 2}}, lambda d: d.get("color") == "red"),
]


@pytest.mark.parametrize("case", range(len(MEANINGS)), ids=lambda case: str(MEANINGS[case][0]))
def test_filters_mean_what_they_say(table: Table, case: int) -> None:
    given, passes = MEANINGS[case]
    expected = sorted(one["id"] for one in MADE if passes(one))
    found = table.search(filter=given, k=1000)
    assert sorted(found.ids) == expected
    assert found.total == len(expected)
    # The same in a search for vectors.
    nearest = table.search(vector=[0, 1, 0], filter=given, k=1000)
    assert [int(key) for key in nearest.ids] == sorted(map(int, expected))


def test_a_query_needs_any_of_its_words_and_orders_by_them(table: Table) -> None:
    for query, texts in (("red boot", ("title", "notes")), ({"title": "red boot"}, ("title",))):
        found = table.search(query, k=1000)
        asked = {"red", "boot"}
        expected = {one["id"] for one in MADE if any(words(one, field) & asked for field in texts)}
        assert set(found.ids) == expected
        assert (np.diff(found.scores) <= 0).all()
        assert found.scores[0] > found.scores[-1]
        both = table.search(query, filter={"color": "red"}, k=1000)
        assert set(both.ids) == {
            one["id"] for one in MADE if one["id"] in expected and one.get("color") == "red"
        }


def test_words_that_are_queries_names_are_words() -> None:
    for word in ("all", "none"):
        assert to_query("query", word, {"title": {"type": "text"}}, "or") == {
            "match": {"field": "title", "text": word, "operator": "or"}
        }


def test_a_field_may_have_a_querys_name(tmp_path: Path) -> None:
    with Table.create(tmp_path / "t", {"range": "keyword"}) as table:
        table.put_many([{"id": "a", "range": "far"}, {"id": "b", "range": "near"}])
        assert table.search(filter={"range": "far"}).ids == ["a"]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("price < 50", ArgumentError, None),
        (["red"], DtypeError, "filter must be a dict such as"),
        ({"price": {"<": 50}}, ArgumentError, "field 'price' has \\['<'\\]: use any of gt, gte"),
        ({"price": {}}, ArgumentError, "field 'price' has no operators"),
        ({3: 4}, DtypeError, "filter has the key 3"),
        ({"price": {"lt": "cheap"}}, ArgumentError, 'field "price": expected a number'),
        ({"v": 3}, ArgumentError, 'field "v" is a vector'),
        ({"title": {"gt": "a"}}, ArgumentError, 'field "title" is a string: .* by range'),
        ({"price": {"gt": 1, "gte": 2}}, ArgumentError, "of gt and gte"),
        ({"price": float("nan")}, ArgumentError, "NaN|nan"),
        ({"price": {1, 2}}, None, None),
        ({"color": object()}, DtypeError, "of type object"),
        ({"term": {"feild": "x"}}, ArgumentError, "unknown field `feild`"),
        ({"bool": {"must": [{"bool": {"oops": []}}]}}, ArgumentError, "oops"),
    ],
)
def test_what_is_wrong_is_named(
    table: Table, given: Any, error: type[ArgumentError] | None, said: str | None
) -> None:
    if error is None:
        assert len(table.search(filter=given, k=1000)) > 0
        return
    if said is None:
        # Words are a query; as a filter they must stand in a text, all of them.
        assert len(table.search(filter=given)) == 0
        return
    with pytest.raises(error, match=said) as raised:
        table.search(filter=given)
    assert raised.value.argument in ("filter", "query")


def test_words_need_a_text_field(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"color": "keyword"})
    with pytest.raises(ArgumentError, match=r"no text field.*{'title': 'red'}"):
        table.search("red")


def test_deep_filters_are_refused(table: Table) -> None:
    deep: dict[str, Any] = {"color": "red"}
    for _ in range(100):
        deep = {"bool": {"must": [deep]}}
    with pytest.raises(ArgumentError, match="deep"):
        table.search(filter=deep)
    endless: dict[str, Any] = {}
    endless["bool"] = {"must": [endless]}
    with pytest.raises((ArgumentError, RecursionError)):
        table.search(filter=endless)
