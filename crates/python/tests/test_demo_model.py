"""The encoder against a slow oracle in f64, written from the paper's formulas; hostile weights."""

import json
import math

import numpy as np
import pytest
from lanewise.demo.errors import DemoError
from lanewise.demo.model import F32, Encoder, gelu_in_place, read_safetensors

WIDTH, HEADS, HIDDEN, LAYERS, WORDS, PLACES = 12, 3, 20, 2, 30, 16


def random_tensors() -> dict[str, F32]:
    random = np.random.Generator(np.random.PCG64(7))

    def tensor(*shape: int) -> F32:
        return random.normal(0, 0.5, shape).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": tensor(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": tensor(PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": tensor(2, WIDTH),
    }
    norms = ["embeddings"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        norms += [f"{at}.attention.output", f"{at}.output"]
        for name, shape in {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (HIDDEN, WIDTH),
            "output.dense": (WIDTH, HIDDEN),
        }.items():
            tensors[f"{at}.{name}.weight"] = tensor(*shape)
            tensors[f"{at}.{name}.bias"] = tensor(shape[0])
    for name in norms:
        tensors[f"{name}.LayerNorm.weight"] = 1 + tensor(WIDTH)
        tensors[f"{name}.LayerNorm.bias"] = tensor(WIDTH)
    return tensors


def oracle(tensors: dict[str, F32], ids: list[int]) -> list[float]:
    """One text, token by token and head by head, in Python's floats."""

    def dense(x: list[float], name: str) -> list[float]:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return [
            sum(float(w) * v for w, v in zip(row, x, strict=True)) + float(b)
            for row, b in zip(weight, bias, strict=True)
        ]

    def norm(x: list[float], name: str) -> list[float]:
        mean = sum(x) / len(x)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-12)
        weight, bias = tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"]
        return [
            (v - mean) / deviation * float(w) + float(b)
            for v, w, b in zip(x, weight, bias, strict=True)
        ]

    def add(x: list[float], y: list[float]) -> list[float]:
        return [a + b for a, b in zip(x, y, strict=True)]

    words, places, types = (
        tensors[f"embeddings.{n}_embeddings.weight"].tolist()
        for n in ("word", "position", "token_type")
    )
    xs = [
        norm(add(add(words[word], places[place]), types[0]), "embeddings")
        for place, word in enumerate(ids)
    ]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query, key, value = (
            [dense(x, f"{at}.attention.self.{n}") for x in xs] for n in ("query", "key", "value")
        )
        nexts = []
        for i, x in enumerate(xs):
            seen: list[float] = []
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                scores = [
                    math.exp(
                        sum(a * b for a, b in zip(query[i][part], k[part], strict=True))
                        / math.sqrt(size)
                    )
                    for k in key
                ]
                for d in range(head * size, (head + 1) * size):
                    seen.append(
                        sum(s * v[d] for s, v in zip(scores, value, strict=True)) / sum(scores)
                    )
            y = norm(add(dense(seen, f"{at}.attention.output.dense"), x), f"{at}.attention.output")
            hidden = [
                v * (1 + math.erf(v / math.sqrt(2))) / 2
                for v in dense(y, f"{at}.intermediate.dense")
            ]
            nexts.append(norm(add(dense(hidden, f"{at}.output.dense"), y), f"{at}.output"))
        xs = nexts
    mean = [sum(column) / len(xs) for column in zip(*xs, strict=True)]
    length = math.sqrt(sum(v * v for v in mean))
    return [v / length for v in mean]


@pytest.mark.parametrize("tokens_len", [1, 2, 7, PLACES])
def test_encoder_agrees_with_the_oracle(tokens_len: int) -> None:
    tensors = random_tensors()
    ids = np.random.Generator(np.random.PCG64(tokens_len)).integers(0, WORDS, (3, tokens_len))
    vectors = Encoder(tensors, HEADS)(ids)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [oracle(tensors, t.tolist()) for t in ids], atol=2e-6)


def test_encoder_names_what_is_missing_or_odd() -> None:
    tensors = random_tensors()
    del tensors["encoder.layer.1.attention.self.key.bias"]
    with pytest.raises(DemoError, match=r"attention\.self\.key\.bias"):
        Encoder(tensors, HEADS)
    with pytest.raises(DemoError, match="odd width"):
        Encoder(random_tensors(), 5)
    with pytest.raises(DemoError, match="not a BERT encoder"):
        Encoder({}, HEADS)


def test_gelu_is_within_its_stated_error() -> None:
    # Longer than a block, so that the seam is passed too.
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    expected = np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x.astype(float)])
    gelu_in_place(answer := x.copy())
    bound = 0.75e-7 * np.abs(x) + 2 * np.finfo(np.float32).eps * (np.abs(expected) + 0.1)
    assert np.all(np.abs(answer - expected) <= bound)


def packed(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_safetensors_are_read() -> None:
    values = np.arange(6, dtype="<f4")
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [24, 32]},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }
    tensors = read_safetensors(packed(header, values.tobytes() + bytes(8)))
    assert list(tensors) == ["a"]
    np.testing.assert_array_equal(tensors["a"], values.reshape(2, 3))


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\1\2\3",
        b"\xff" * 8 + b"{}",
        (100).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"\xff\xfe",
        packed([], b""),
        packed({"a": 1}, b""),
        packed({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(7)),
        packed({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, bytes(8)),
        packed({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}}, bytes(8)),
        packed({"a": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}}, bytes(8)),
        packed({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, bytes(8)),
        packed({"a": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}}, bytes(8)),
        packed({"a": {"dtype": "F32", "shape": 2, "data_offsets": 0}}, bytes(8)),
    ],
)
def test_damaged_safetensors_are_refused(blob: bytes) -> None:
    with pytest.raises(DemoError, match="damaged"):
        read_safetensors(blob)
