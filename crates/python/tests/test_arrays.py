"""Arrays of every kind: what converts without loss is taken, and the rest is refused by name."""

import array
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

FLOATS = ["f2", "f4", "f8", "g"]
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
DIM = 12


def flat(dtype: str = "f32", dim: int = DIM) -> lanewise.Index:
    return lanewise.Index(dim, dtype=dtype, kind="flat")


def contents(index: lanewise.Index) -> list[list[float]]:
    """What an index holds, seen through its answers to fixed queries, in the order of ids."""
    queries = vectors(index.dtype, 3, index.dim, seed=99)
    ids, found = index.search(queries, len(index))
    return np.take_along_axis(found, np.argsort(ids, axis=1), axis=1).tolist()


def stretched(x: NDArray[Any]) -> NDArray[Any]:
    wide = np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)
    return wide[::2, ::3]


def unaligned(x: NDArray[Any]) -> NDArray[Any]:
    buffer = np.zeros(x.nbytes + 1, np.uint8)
    view = buffer[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def frozen(x: NDArray[Any]) -> NDArray[Any]:
    x = x.copy()
    x.flags.writeable = False
    return x


class Offering:
    """Not an array, but it can give one."""

    def __init__(self, x: NDArray[Any]) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.x


LAYOUTS = {
    "as it is": lambda x: x,
    "fortran": np.asfortranarray,
    "stretched": stretched,
    "rows reversed": lambda x: x[::-1].copy()[::-1],
    "columns reversed": lambda x: x[:, ::-1].copy()[:, ::-1],
    "unaligned": unaligned,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "little-endian": lambda x: x.astype(x.dtype.newbyteorder("<")),
    "read-only": frozen,
    "list": lambda x: x.tolist(),
    "list of arrays": list,
    "__array__": Offering,
    "memoryview": memoryview,
    "unmasked": np.ma.masked_array,
    "matrix subclass": lambda x: x.view(type("Sub", (np.ndarray,), {})),
}


# A memoryview of bools has no format that tells them from bytes.
@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        (layout, dtype)
        for layout in LAYOUTS
        for dtype in ["f4", "f8", "i1", "u1", "i8", "?"]
        if (layout, dtype) != ("memoryview", "?")
    ],
)
@pytest.mark.parametrize("target", ["f32", "i8"])
def test_every_layout_is_read_in_order(target: str, dtype: str, layout: str) -> None:
    x = np.abs(vectors("i8", 9, DIM)).astype(dtype)
    expected = contents(flat(target).add(np.ascontiguousarray(x, np.int8).astype(np.float32)))
    assert contents(flat(target).add(LAYOUTS[layout](x))) == expected


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ["?"])
@pytest.mark.parametrize("target", ["f32", "i8", "bits"])
def test_every_number_type_converts(target: str, dtype: str) -> None:
    bits = vectors("bits", 9, DIM)
    expected = contents(flat(target).add(bits.astype(np.float32)))
    assert contents(flat(target).add(bits.astype(dtype))) == expected
    ids, _ = flat(target).add(bits.astype(dtype)).search(bits.astype(dtype)[4], 1)
    assert (bits[ids[0]] == bits[4]).all()


@pytest.mark.parametrize(
    ("target", "values", "unfit"),
    [
        ("f32", np.array([2**24, 2**24 + 1]), "16777217"),
        ("f32", np.array([-(2**24) - 1, 0], "i4"), "-16777217"),
        ("f32", np.array([0, 2**64 - 1], "u8"), "18446744073709551615"),
        ("f32", np.array([2**63 - 1, 0], "i8"), "9223372036854775807"),
        ("f32", np.array([1e300, 0]), "1e300"),
        ("f32", np.array([0, -3.5e38]), "-3.5e38"),
        ("i8", np.array([127, 128]), "128"),
        ("i8", np.array([-128, -129], "i2"), "-129"),
        ("i8", np.array([255, 0], "u1"), "255"),
        ("i8", np.array([0, 0.5]), "0.5"),
        ("i8", np.array([np.nan, 0]), "NaN"),
        ("i8", np.array([0, -np.inf], "f4"), "-inf"),
        ("bits", np.array([0, 2]), "2"),
        ("bits", np.array([0.5, 0]), "0.5"),
        ("bits", np.array([0, -1], "i1"), "-1"),
    ],
)
def test_first_value_that_does_not_convert_is_named(
    target: str, values: NDArray[Any], unfit: str
) -> None:
    index = flat(target, 2)
    x = np.zeros((4, 2), values.dtype)
    x[2] = values
    x[3] = values
    with pytest.raises(lanewise.ArgumentError) as raised:
        index.add(x)
    assert raised.value.argument == "x"
    # In each case it is the last that is not zero.
    column = max(i for i, value in enumerate(values.tolist()) if value != 0)
    assert str(raised.value).startswith(f"x[2, {column}] = {unfit} ")
    with pytest.raises(lanewise.ArgumentError, match=r"^q\[[01]\] = ") as raised:
        index.search(values)
    assert raised.value.argument == "q"
    assert len(index) == 0


@pytest.mark.parametrize(
    "value", [2**24, 2**24 + 2, -(2**30), 2**62 + 2**39, -(2**62), 0, 2**24 - 1]
)
def test_whole_numbers_that_f32_holds_are_taken(value: int) -> None:
    # Inner products with 1 give the value back.
    index = lanewise.Index(1, metric="ip", kind="flat").add(np.array([[value]]))
    assert int(-index.search([1], 1)[1][0]) == value


def test_floats_are_rounded_as_numpy_rounds() -> None:
    x = np.random.default_rng(0).normal(size=(20, DIM))
    assert contents(flat().add(x)) == contents(flat().add(x.astype(np.float32)))
    tiny = np.full((1, DIM), 1e-60)
    assert contents(flat().add(tiny)) == contents(flat().add(np.zeros((1, DIM))))


@pytest.mark.parametrize("dim", [1, 5, 8, 12, 16, 17, 64, 100])
def test_bits_packed_and_loose_are_the_same(dim: int) -> None:
    loose = vectors("bits", 30, dim)
    packed = np.packbits(loose, axis=-1, bitorder="little")
    expected = (loose[:, None] != loose[None]).sum(-1)
    for x in (loose, packed, loose.astype(np.uint8), packed[::-1].copy()[::-1], loose.tolist()):
        index = flat("bits", dim).add(x)
        ids, found = index.search(x, 30)
        in_order = np.take_along_axis(found, np.argsort(ids, axis=1), axis=1)
        np.testing.assert_array_equal(in_order, expected)
    mixed, _ = flat("bits", dim).add(loose).search(packed, 1)
    assert (loose[mixed[:, 0]] == loose).all()


def test_bools_that_are_neither_0_nor_1_count_as_true() -> None:
    odd = np.frombuffer(bytes([0, 2, 255, 1] * 3), dtype=np.bool_).reshape(1, DIM)
    true = np.array([[False, True, True, True] * 3])
    for target in ("f32", "i8", "bits"):
        assert contents(flat(target).add(odd)) == contents(flat(target).add(true))


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, DIM), complex),
        np.zeros((2, DIM), object),
        np.zeros((2, DIM), "U3"),
        np.zeros((2, DIM), "S3"),
        np.zeros((2, DIM), "V4"),
        np.zeros((2, DIM), "M8[s]"),
        np.zeros((2, DIM), "m8[s]"),
        np.zeros(DIM, [("a", "f4")]),
        None,
        "text",
        {1: 2},
        object(),
    ],
)
def test_other_types_are_refused(x: object) -> None:
    for target in ("f32", "i8", "bits"):
        for call, argument in ((flat(target).add, "x"), (flat(target).search, "q")):
            with pytest.raises(lanewise.DtypeError, match=rf"^{argument} has dtype") as raised:
                call(x)  # type: ignore[arg-type]
            assert raised.value.argument == argument
            assert isinstance(raised.value, TypeError)


def test_what_cannot_be_read_keeps_its_cause() -> None:
    class Broken:
        def __array__(self, dtype: object = None, copy: object = None) -> object:
            raise RuntimeError("on another device")

    with pytest.raises(
        lanewise.ArgumentError, match=r"x, of type .*Broken.*on another device"
    ) as raised:
        flat().add(Broken())  # type: ignore[arg-type]
    assert isinstance(raised.value.__cause__, RuntimeError)
    with pytest.raises(lanewise.ArgumentError, match="inhomogeneous"):
        flat().add([[1.0, 2.0], [3.0]])


def test_masked_elements_are_refused() -> None:
    x = np.ma.masked_array(np.ones((3, DIM)), np.zeros((3, DIM), bool))
    x[1, 2] = np.ma.masked
    with pytest.raises(lanewise.ArgumentError, match=r"masked.*x\.filled"):
        flat().add(x)


def test_array_module_and_bytes() -> None:
    assert len(flat().add(array.array("f", range(DIM)))) == 1
    assert len(flat().add(array.array("d", range(DIM)))) == 1
    with pytest.raises(lanewise.DtypeError):
        flat().add(b"bytes")


def test_lent_array_is_not_kept() -> None:
    x = vectors("f32", 5, DIM).copy()
    index = flat().add(x)
    before = contents(index)
    x[:] = 0
    assert contents(index) == before


def test_subnormal_and_extreme_i8_survive() -> None:
    x = np.array([[-128] * DIM, [127] * DIM], np.int8)
    ids, found = flat("i8").add(x).search(x, 2)
    assert ids.tolist() == [[0, 1], [1, 0]]
    assert found.tolist() == [[0, 255**2 * DIM]] * 2


@st.composite
def views(draw: st.DrawFn) -> NDArray[Any]:
    """Views of any layout on small whole numbers that every element type holds."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    row_step, column_step = (draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in range(2))
    dtype = np.dtype(draw(st.sampled_from(FLOATS + INTEGERS)))
    if draw(st.booleans()):
        dtype = dtype.newbyteorder(draw(st.sampled_from("<>")))
    shape = (rows * abs(row_step), columns * abs(column_step))
    offset = draw(st.integers(0, 3))
    buffer = np.zeros(offset + shape[0] * shape[1] * dtype.itemsize, np.uint8)
    base = buffer[offset:].view(dtype).reshape(shape, order=draw(st.sampled_from("CF")))
    seed = draw(st.integers(0, 2**32 - 1))
    base[...] = np.random.default_rng(seed).integers(1, 100, shape)
    view = base[::row_step, ::column_step]
    if draw(st.booleans()):
        view = np.broadcast_to(view[:1], view.shape)
    return view.T if draw(st.booleans()) else view


@settings(deadline=None, max_examples=300)
@given(view=views(), target=st.sampled_from(["f32", "i8"]))
def test_any_view_is_read_as_numpy_reads_it(view: NDArray[Any], target: str) -> None:
    plain = np.array(view.tolist(), np.float32)
    dim = view.shape[1]
    assert contents(flat(target, dim).add(view)) == contents(flat(target, dim).add(plain))
    index = flat(target, dim).add(plain)
    for found, expected in zip(index.search(view, 1), index.search(plain, 1), strict=True):
        np.testing.assert_array_equal(found, expected)
