"""What a kernel's result must be, from its definition, in float64."""

import numpy

# Of a float result, relative to the sum of its terms' sizes: above the rounding even of those who
# compute in f16 or bf16, far below what a wrong format or a missing part would make.
TOLERANCE = 1e-2


def decode(kind: str, data: numpy.ndarray, is_query: bool) -> numpy.ndarray:
    """The numbers that the bytes of a query or row stand for."""
    if kind.startswith("f32") and kind != "f32":
        kind = "f32" if is_query else kind[3:]
    if kind in ("i8u4", "u8u4"):
        kind = kind[:2] if is_query else "u4halves"
    match kind:
        case "bf16":
            return (data.view(numpy.uint16).astype(numpy.uint32) << 16).view("f4").astype(float)
        case "f32" | "f16" | "i8" | "u8":
            names = {"f32": "f4", "f16": "f2", "i8": "i1", "u8": "u1"}
            return data.view(names[kind]).astype(float)
        case "i8offset":  # FAISS keeps a row's signed byte plus 128
            return data.view("i1").astype(float) if is_query else data.astype(float) - 128
        case "u4":
            return numpy.stack([data >> 4, data & 15], 1).ravel().astype(float)
        case "i4":
            values = decode("u4", data, is_query)
            return numpy.where(values > 7, values - 16, values)
        case "u4halves":
            return numpy.concatenate([data >> 4, data & 15]).astype(float)
        case "bits":
            return numpy.unpackbits(data).astype(float)
        case "u4bits":
            if not is_query:
                return numpy.unpackbits(data).astype(float)
            planes = numpy.unpackbits(data.reshape(4, -1), axis=1)
            return (planes * numpy.array([[1], [2], [4], [8]])).sum(0).astype(float)
    raise ValueError(kind)


def pair(op: str, kind: str, query: numpy.ndarray, row: numpy.ndarray) -> tuple[float, float]:
    """The result for two vectors given as bytes, and the size that rounding is relative to."""
    a, b = decode(kind, query, True), decode(kind, row, False)
    size = 1.0
    match op:
        case "dot":
            value, size = a @ b, numpy.abs(a) @ numpy.abs(b)
        case "l2":
            value = size = numpy.square(a - b).sum()
        case "cosine":
            value = a @ b / numpy.sqrt((a @ a) * (b @ b))
        case "l1":
            value = size = numpy.abs(a - b).sum()
        case "linf":
            value = size = numpy.abs(a - b).max()
        case "hamming":
            value = (a != b).sum()
        case "jaccard":
            value = 1 - (a * b).sum() / max(1, numpy.maximum(a, b).sum())
        case _:
            raise ValueError(op)
    return float(value), float(size) or 1.0


def scan(tables: numpy.ndarray, block: numpy.ndarray) -> numpy.ndarray:
    """The 32 sums of a block of 4-bit codes."""
    tables, codes = tables.reshape(-1, 16), block.reshape(-1, 16)
    each = numpy.arange(len(tables))[:, None]
    low, high = tables[each, codes & 15], tables[each, codes >> 4]
    return numpy.concatenate([low.sum(0, dtype=float), high.sum(0, dtype=float)])
