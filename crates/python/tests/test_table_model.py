"""A table against a dict: whatever is done, in whatever order, both hold the same."""

from typing import Any

import hypothesis.strategies as st
import lanewise
import numpy as np
import pytest
from conftest import distances
from hypothesis import HealthCheck, given, settings
from lanewise import Table

DIM = 3
SCHEMA = {
    "name": "keyword",
    "price": "float",
    "v": lanewise.vector(DIM, m=4),
    "w": lanewise.vector(DIM, "cosine", kind="flat"),
}

IDS = st.sampled_from("abcdefghij")
VECTORS = st.lists(st.integers(-9, 9).map(float), min_size=DIM, max_size=DIM).filter(any)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=5),
        "price": st.floats(allow_nan=False, allow_infinity=False),
        "more": st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.text(min_size=1, max_size=3).filter(lambda t: "." not in t),
                    inner,
                    max_size=3,
                )
            ),
            max_leaves=5,
        ),
        "v": VECTORS,
        "w": VECTORS,
    },
)
STEPS = st.one_of(
    st.tuples(st.just("put"), IDS, DOCUMENTS, st.sampled_from(["always", "absent", "seq"])),
    st.tuples(st.just("put_many"), st.lists(st.tuples(IDS, DOCUMENTS), max_size=6)),
    st.tuples(st.just("delete"), st.lists(IDS, max_size=3)),
    st.tuples(st.sampled_from(["flush", "force_merge", "merge", "reopen"])),
)


def visible(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("v", "w")}


def compare(table: Table, model: dict[str, tuple[dict[str, Any], int]]) -> None:
    assert len(table) == len(model)
    for key in "abcdefghij":
        found = table.get(key)
        assert (key in table) == (key in model)
        if key not in model:
            assert found is None
            continue
        assert found is not None
        document, version = model[key]
        assert found == {"id": key, **visible(document)}
        assert found.version == version
        if "price" in document:
            # Equality of floats survives the way through text.
            same = {key for key, (one, _) in model.items() if one.get("price") == document["price"]}
            assert set(table.search(filter={"price": document["price"]}, k=99).ids) == same
    for field, metric in (("v", "l2"), ("w", "cosine")):
        having = [key for key, (document, _) in model.items() if field in document]
        found = table.search(vector={field: np.ones(DIM)}, k=len(having) + 1)
        assert sorted(found.ids) == sorted(having)
        if having:
            x = np.array([model[key][0][field] for key in found.ids])
            expected = distances(x, np.ones((1, DIM)), metric)[0]
            np.testing.assert_allclose(found.distances, expected, atol=1e-5)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=12))
def test_any_history(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    path = tmp_path_factory.mktemp("history") / "t"
    model: dict[str, tuple[dict[str, Any], int]] = {}
    seqs: dict[str, int] = {}
    table = Table.create(path, SCHEMA)
    last = 0
    for what, *values in steps:
        if what == "put":
            key, document, when = values
            there = key in model
            condition: dict[str, Any] = {}
            if when == "absent":
                condition = {"if_absent": True}
            elif when == "seq":
                condition = {"if_seq": seqs.get(key, 10**9)}
            if (when == "absent" and there) or (when == "seq" and not there):
                with pytest.raises(lanewise.ConflictError):
                    table.put(document, id=key, **condition)
                continue
            done = table.put(document, id=key, **condition)
            assert done.outcome == ("updated" if there else "created")
            assert done.seq > last
            last = done.seq
            model[key] = (document, model[key][1] + 1 if there else 1)
            seqs[key] = done.seq
        elif what == "put_many":
            pairs = values[0]
            written = table.put_many([one for _, one in pairs], ids=[key for key, _ in pairs])
            for (key, document), seq in zip(pairs, written.seqs.tolist(), strict=True):
                assert seq > last
                last = seq
                model[key] = (document, model[key][1] + 1 if key in model else 1)
                seqs[key] = seq
        elif what == "delete":
            gone = set(values[0]) & set(model)
            assert table.delete(values[0]) == len(gone)
            for key in gone:
                del model[key], seqs[key]
        elif what == "reopen":
            table.close()
            table = Table.open(path)
        else:
            getattr(table, what)()
        last = max(last, *seqs.values(), 0) if seqs else last
        compare(table, model)
    table.close()
    with Table.open(path) as table:
        compare(table, model)
