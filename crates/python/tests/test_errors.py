"""Wrong arguments: each gets a typed error that names it, and changes nothing."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import vectors
from lanewise import ArgumentError, DtypeError, Index

DIM = 8
X = vectors("f32", 30, DIM)
BITS = vectors("bits", 30, 12)

CREATE: dict[str, tuple[Callable[[], Any], type[Exception], str, str]] = {
    "dim zero": (lambda: Index(0), ArgumentError, "dim", "dim=0 is not between 1 and 65536"),
    "dim large": (lambda: Index(65537), ArgumentError, "dim", "not between 1 and 65536"),
    "dim huge": (lambda: Index(10**30), ArgumentError, "dim", "exceeds 64 bits"),
    "dim negative": (lambda: Index(-1), ArgumentError, "dim", "dim=-1 must not be negative"),
    "dim float": (lambda: Index(8.0), DtypeError, "dim", "must be an integer, not float"),
    "dim text": (lambda: Index("8"), DtypeError, "dim", "must be an integer, not str"),
    "metric": (lambda: Index(8, metric="euclid"), ArgumentError, "metric", '"l2", "ip", "cosine"'),
    "metric type": (lambda: Index(8, metric=2), DtypeError, "metric", "not int"),
    "metric of dtype": (
        lambda: Index(8, metric="hamming"),
        ArgumentError,
        "metric",
        "does not meas",
    ),
    "metric of bits": (lambda: Index(8, "l2", "bits"), ArgumentError, "metric", "does not measure"),
    "dtype": (lambda: Index(8, dtype="f64"), ArgumentError, "dtype", '"f32", "i8", "bits"'),
    "dtype type": (lambda: Index(8, dtype=np.float32), DtypeError, "dtype", "one of"),
    "kind": (lambda: Index(8, kind="lsh"), ArgumentError, "kind", '"flat", "hnsw"'),
    "kind surrogate": (lambda: Index(8, kind="\ud800"), ArgumentError, "kind", "unknown"),
    "m small": (lambda: Index(8, m=1), ArgumentError, "m", "m=1 is not between 2 and 512"),
    "m large": (lambda: Index(8, m=513), ArgumentError, "m", "between 2 and 512"),
    "ef_construction": (
        lambda: Index(8, ef_construction=0),
        ArgumentError,
        "ef_construction",
        "betw",
    ),
    "nlist": (lambda: Index(8, kind="ivf", nlist=65537), ArgumentError, "nlist", "between 0"),
    "pq4": (lambda: Index(8, code="pq4"), ArgumentError, "code", 'kind="ivf"'),
    "seed negative": (
        lambda: Index(8, seed=-1),
        ArgumentError,
        "seed",
        "seed=-1 must not be negative",
    ),
    "seed large": (lambda: Index(8, seed=2**64), ArgumentError, "seed", "2\\*\\*64 - 1"),
}

ADD: dict[str, tuple[Callable[[Index], Any], type[Exception], str, str]] = {
    "dim": (lambda i: i.add(X[:, :5]), ArgumentError, "x", r"shape \(30, 5\).*dim=8.*\(n, 8\)"),
    "dim of one": (lambda i: i.add(X[0, :5]), ArgumentError, "x", r"shape \(5,\).*use \(8,\)"),
    "empty": (lambda i: i.add([]), ArgumentError, "x", "x is empty"),
    "empty rows": (lambda i: i.add(X[:0]), ArgumentError, "x", r"x is empty, of shape \(0, 8\)"),
    "0-d": (lambda i: i.add(3.0), ArgumentError, "x", r"shape \(\)"),
    "0-d bool": (lambda i: i.add(True), ArgumentError, "x", r"shape \(\)"),
    "3-d": (lambda i: i.add(X[None]), ArgumentError, "x", r"shape \(1, 30, 8\)"),
    "NaN": (lambda i: i.add(spoiled(np.nan)), ArgumentError, "x", "vector 3 has NaN at position 5"),
    "infinite": (lambda i: i.add(spoiled(np.inf)), ArgumentError, "x", "vector 3 has inf"),
    "too long": (lambda i: i.add(spoiled(3e38)), ArgumentError, "x", "vector 3 is too long"),
    "zero": (lambda i: i.add(X * 0), ArgumentError, "x", "vector 0 is zero"),
    "ids few": (lambda i: i.add(X, range(29)), ArgumentError, "ids", "29 entries for 30"),
    "ids none": (lambda i: i.add(X, []), ArgumentError, "ids", "0 entries for 30"),
    "ids twice": (lambda i: i.add(X, [5] * 30), ArgumentError, "ids", "names 5 twice"),
    "ids known": (lambda i: i.add(X[:1], [0]), ArgumentError, "ids", "has it already"),
    "ids 2-d": (lambda i: i.add(X, [[1]]), ArgumentError, "ids", r"shape \(1, 1\)"),
    "ids floats": (lambda i: i.add(X[:1], [1.0]), DtypeError, "ids", "must be integers"),
    "ids bools": (lambda i: i.add(X[:1], [True]), DtypeError, "ids", "must be integers"),
    "ids text": (lambda i: i.add(X[:1], ["a"]), DtypeError, "ids", "ids has dtype"),
    "ids large": (lambda i: i.add(X[:1], np.array([2**63], "u8")), ArgumentError, "ids", "int64"),
    "ids huge": (lambda i: i.add(X[:1], [2**70]), DtypeError, "ids", "object"),
    "threads zero": (
        lambda i: i.add(X, num_threads=0),
        ArgumentError,
        "num_threads",
        "between 1 and",
    ),
    "threads negative": (
        lambda i: i.add(X, num_threads=-2),
        ArgumentError,
        "num_threads",
        "negative",
    ),
    "threads many": (lambda i: i.add(X, num_threads=5000), ArgumentError, "num_threads", "4096"),
    "threads text": (lambda i: i.add(X, num_threads="2"), DtypeError, "num_threads", "integer"),
    "progress": (lambda i: i.add(X, progress="yes"), DtypeError, "progress", "True or False"),
}

SEARCH: dict[str, tuple[Callable[[Index], Any], type[Exception], str, str]] = {
    "dim": (lambda i: i.search(X[:, :5]), ArgumentError, "q", r"q has shape \(30, 5\).*dim=8"),
    "empty": (lambda i: i.search(X[:0]), ArgumentError, "q", "q is empty"),
    "3-d": (lambda i: i.search(X[None]), ArgumentError, "q", "shape"),
    "NaN": (lambda i: i.search(spoiled(np.nan)), ArgumentError, "q", "q: vector 3 has NaN"),
    "zero": (lambda i: i.search(X[0] * 0), ArgumentError, "q", "vector 0 is zero"),
    "k zero": (lambda i: i.search(X, 0), ArgumentError, "k", "k=0: ask for at least one"),
    "k negative": (lambda i: i.search(X, -1), ArgumentError, "k", "k=-1 must not be negative"),
    "k float": (lambda i: i.search(X, 1.0), DtypeError, "k", "k must be an integer, not float"),
    "k none": (lambda i: i.search(X, None), DtypeError, "k", "not NoneType"),
    "k huge": (lambda i: i.search(X, 10**40), ArgumentError, "k", "exceeds 64 bits"),
    "ef_search": (lambda i: i.search(X, ef_search=0), ArgumentError, "ef_search", "ef_search=0"),
    "nprobe": (lambda i: i.search(X, nprobe=0), ArgumentError, "nprobe", "nprobe=0"),
    "ef_search negative": (
        lambda i: i.search(X, ef_search=-5),
        ArgumentError,
        "ef_search",
        "negat",
    ),
    "threads": (lambda i: i.search(X, num_threads=0), ArgumentError, "num_threads", "between 1"),
}


def spoiled(value: float) -> Any:
    x = X.copy()
    x[3, 5] = value
    return x


def check(call: Callable[[], Any], error: type[Exception], argument: str, message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        call()
    assert type(raised.value) is error
    assert raised.value.argument == argument  # type: ignore[attr-defined]
    assert isinstance(raised.value, lanewise.Error)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("case", CREATE)
def test_create(case: str) -> None:
    check(*CREATE[case])


@pytest.mark.parametrize("case", ADD)
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_add(kind: str, case: str) -> None:
    index = Index(DIM, "cosine", kind=kind).add(X)
    before = index.search(X, 30)
    call, *expected = ADD[case]
    check(lambda: call(index), *expected)
    assert len(index) == 30
    for found, was in zip(index.search(X, 30), before, strict=True):
        np.testing.assert_array_equal(found, was)


@pytest.mark.parametrize("case", SEARCH)
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_search(kind: str, case: str) -> None:
    index = Index(DIM, "cosine", kind=kind).add(X)
    call, *expected = SEARCH[case]
    check(lambda: call(index), *expected)


@pytest.mark.parametrize("shape", [(3, 5), (3, 1), (3, 13), (5,)])
def test_shapes_of_bits_are_explained(shape: tuple[int, ...]) -> None:
    index = Index(12, dtype="bits")
    for dtype in (np.uint8, np.bool_, np.int64):
        with pytest.raises(ArgumentError, match=r"dim=12 bits.*\(n, 12\).*\(n, 2\).*packbits"):
            index.add(np.zeros(shape, dtype))
    # Only bytes can be packed.
    with pytest.raises(ArgumentError, match="packbits"):
        index.add(np.zeros((3, 2), np.int64))


def test_bits_beyond_the_dimension_are_refused() -> None:
    with pytest.raises(ArgumentError, match="bits set beyond dim=12") as raised:
        Index(12, dtype="bits").add(np.full((2, 2), 255, np.uint8))
    assert raised.value.argument == "x"


@pytest.mark.parametrize("call", ["open", "save"])
@pytest.mark.parametrize(
    ("path", "error"),
    [(3, DtypeError), (b"x", DtypeError), ("", ArgumentError), ("a\0b", ArgumentError)],
)
def test_paths(call: str, path: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="path") as raised:
        Index.open(path) if call == "open" else Index(2).save(path)
    assert raised.value.argument == "path"  # type: ignore[attr-defined]


def test_missing_and_unknown_arguments_are_pythons() -> None:
    with pytest.raises(TypeError, match="dim"):
        Index()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="metrik"):
        Index(3, metrik="l2")  # type: ignore[call-arg]


def test_integers_of_every_kind_are_taken() -> None:
    index = Index(np.int64(DIM), m=np.uint8(8), seed=2**64 - 1).add(X, num_threads=np.int32(1))
    assert index.seed == 2**64 - 1
    assert index.search(X, np.uint16(3))[0].shape == (30, 3)


def test_errors_can_be_pickled() -> None:
    with pytest.raises(ArgumentError) as raised:
        Index(0)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is ArgumentError
    assert (str(again), again.argument) == (str(raised.value), "dim")


def test_an_index_is_neither_pickled_nor_copied() -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="Index"):
            refused(Index(2))


def test_the_documented_dimensions_are_those_allowed() -> None:
    documented = r"1 to (\d+) \(i8, u8: 1 to (\d+); bits: 1 to (\d+)"
    limits = re.search(documented, Index.__doc__ or "")
    assert limits
    for dtypes, limit in zip(
        (["f32", "f16", "bf16"], ["i8", "u8"], ["bits"]), map(int, limits.groups()), strict=True
    ):
        for dtype in dtypes:
            assert Index(limit, dtype=dtype).dim == limit
            with pytest.raises(ArgumentError, match=f"not between 1 and {limit}"):
                Index(limit + 1, dtype=dtype)
