"""Stored vectors of a table are what an index alone would store of them."""

from pathlib import Path
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import vectors
from lanewise import ArgumentError, Index, Table
from numpy.typing import NDArray

N, DIM = 60, 11
FIELDS: dict[str, dict[str, Any]] = {
    "f32": {"metric": "l2", "kind": "flat"},
    "cosine": {"metric": "cosine"},
    "f16": {"metric": "cosine", "dtype": "f16"},
    "bf16": {"metric": "ip", "dtype": "bf16", "kind": "ivf"},
    "i8": {"metric": "l2", "dtype": "i8"},
    "u8": {"metric": "l2", "dtype": "u8", "kind": "flat"},
    "bits": {"metric": "hamming", "dtype": "bits"},
    "coded": {"metric": "l2", "code": "i8"},
}


def brought(name: str, seed: int) -> NDArray[Any]:
    kind = FIELDS[name].get("dtype", "f32")
    if kind in ("bits", "i8"):
        return vectors(kind, N, DIM, seed)
    if kind == "u8":
        return np.abs(vectors("i8", N, DIM, seed)).astype(np.uint8)
    # Not whole: rounding shows.
    return np.random.default_rng(seed).normal(size=(N, DIM)).astype(np.float32)


def stored(name: str, x: NDArray[Any]) -> NDArray[Any]:
    kept = {key: value for key, value in FIELDS[name].items() if key in ("metric", "dtype")}
    index = Index(DIM, kind="flat", **kept)
    return np.asarray(index.add(x).get(range(len(x))))


def same(table: Table, expected: dict[str, NDArray[Any]]) -> None:
    ids = [str(n) for n in range(N)]
    documents = table.get_many([*ids, "none"], vectors=True)
    assert documents[-1] is None
    hits = table.search(k=N + 9, sort="n", vectors=list(FIELDS))
    assert hits.ids == ids
    bare = table.search(k=N + 9, sort="n", vectors="f32", documents=False)
    assert bare.documents is None
    for name, column in expected.items():
        for n in range(N):
            document = documents[n]
            assert document is not None
            found, vector = document.get(name), hits.vectors[name][n]
            if n % 7 == 3:
                assert found is None
                assert vector is None
                continue
            for one in (found, vector, hits[n].document[name]):
                assert one.dtype == column.dtype
                assert one.tobytes() == column[n].tobytes(), (name, n)
    assert bare.vectors["f32"][0].tobytes() == expected["f32"][0].tobytes()


def documents(x: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Every seventh without vectors."""
    return [
        {"id": n, "n": n} | ({name: x[name][n] for name in x} if n % 7 != 3 else {})
        for n in range(N)
    ]


def test_what_is_put_is_read_back(tmp_path: Path) -> None:
    schema = {name: lanewise.vector(DIM, **field) for name, field in FIELDS.items()}
    with Table.create(tmp_path / "t", {"n": "integer", **schema}) as table:
        for seed in range(3):
            x = {name: brought(name, seed) for name in FIELDS}
            expected = {name: stored(name, x[name]) for name in FIELDS}
            half = documents(x)
            table.put_many(half[: N // 2])
            table.flush()
            table.put_many(half[N // 2 :])
            same(table, expected)
            table.flush()
            same(table, expected)
            table.force_merge(1)
            same(table, expected)
    with Table.open(tmp_path / "t") as table:
        same(table, expected)
        # What is read can be written again.
        again = table.get(5, vectors=["f32", "i8"])
        assert again is not None
        assert set(again) == {"id", "n", "f32", "i8"}
        again["n"] = 500
        table.put(again)
        kept = table.get(5, vectors=True)
        assert kept is not None
        assert kept["f32"].tobytes() == expected["f32"][5].tobytes()
        assert set(kept) == {"id", "n", "f32", "i8"}
        assert "f32" not in table.get(5)


def test_what_is_loaded_is_read_back(tmp_path: Path) -> None:
    x = brought("cosine", 9)
    with Table.create(tmp_path / "t", {"v": lanewise.vector(DIM, "cosine")}) as table:
        table.load(None, ids=range(N), vectors={"v": x})
        hits = table.search(vector=x[4], k=5, vectors="v")
        for hit, vector in zip(hits, hits.vectors["v"], strict=True):
            assert vector is not None
            assert vector.tobytes() == stored("cosine", x)[int(hit.id)].tobytes()


def test_a_field_without_vectors_is_named(tmp_path: Path) -> None:
    with Table.create(tmp_path / "t", {"n": "integer", "v": lanewise.vector(DIM)}) as table:
        for call in (lambda: table.get(1, vectors="n"), lambda: table.search(vectors=["v", "w"])):
            with pytest.raises(ArgumentError, match=r"is no vector field.*\['v'\]|\[\"v\"\]"):
                call()
