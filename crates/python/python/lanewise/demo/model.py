"""all-MiniLM-L6-v2 in NumPy: text to a unit vector of 384 f32.

A BERT encoder (Devlin et al., 2019; MiniLM: Wang et al., 2020) with mean pooling, as
sentence-transformers publishes it: 6 layers, width 384, 12 heads, 23 M parameters.

    x = norm(word + position + type)
    six times:
        x = norm(x + attention(x))
        x = norm(x + gelu(x W1) W2)
    answer = mean over tokens of x, scaled to length 1

Every batch holds texts of one length in tokens, so there is neither padding nor mask.
Arithmetic is f32 throughout. A text is cut at 128 tokens, as the model's own tokenizer
file says; of WordNet's 117,000 entries a handful is longer.

The tokenizer is Hugging Face's `tokenizers`; torch is not needed.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from .errors import DemoError

F32 = NDArray[np.float32]

TOKENS_MAX = 128
HEADS = 12
_NORM_EPSILON = np.float32(1e-12)
_HEADER_BYTES_MAX = 16 << 20
# Twenty passes over a block and two temporaries: they should stay in a core's L2.
_GELU_BLOCK_LEN = 1 << 15


def read_safetensors(blob: bytes) -> dict[str, F32]:
    """The f32 tensors of a safetensors file, as views into `blob`.

    Layout: header length (u64, little-endian), JSON header {name: {dtype, shape,
    data_offsets: [begin, end]}}, data. Tensors of other types are passed over.

    Raises DemoError where the header contradicts itself or the file's size.
    """
    header_bytes = int.from_bytes(blob[:8], "little")
    if len(blob) < 8 or header_bytes > min(len(blob) - 8, _HEADER_BYTES_MAX):
        raise DemoError("model.safetensors is damaged: its header is longer than the file")
    data = memoryview(blob)[8 + header_bytes :]
    tensors: dict[str, F32] = {}
    try:
        header: dict[str, Any] = json.loads(blob[8 : 8 + header_bytes])
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] != "F32":
                continue
            begin, end = entry["data_offsets"]
            shape = tuple(entry["shape"])
            if not 0 <= begin <= end <= len(data) or end - begin != 4 * math.prod(shape):
                raise ValueError(f"tensor {name} lies outside the file")
            tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DemoError(f"model.safetensors is damaged: {error}") from error
    return tensors


def gelu_in_place(x: F32) -> None:
    """x ← x·Φ(x), the exact (erf) form of GELU, in place; x is contiguous.

    gelu(x) = max(x, 0) - |x|·erfc(|x|/√2)/2, and erfc is Abramowitz & Stegun 7.1.26,
    off by at most 1.5e-7, so gelu is off by at most |x|·0.75e-7 plus f32 rounding.
    """
    flat = x.reshape(-1)
    for begin in range(0, flat.size, _GELU_BLOCK_LEN):
        block = flat[begin : begin + _GELU_BLOCK_LEN]
        size = np.abs(block)
        t = size * np.float32(0.3275911 * math.sqrt(0.5))
        t += np.float32(1)
        np.reciprocal(t, out=t)
        tail = t * np.float32(1.061405429 / 2)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(coefficient / 2)
            tail *= t
        tail *= size
        np.multiply(size, size, out=t)
        t *= np.float32(-0.5)
        tail *= np.exp(t, out=t)
        np.maximum(block, np.float32(0), out=block)
        block -= tail


@dataclass(frozen=True, slots=True)
class _Norm:
    """Layer normalisation over the last axis (Ba et al., 2016)."""

    weight: F32
    bias: F32

    def in_place(self, x: F32) -> F32:
        width = np.float32(x.shape[-1])
        x -= x.sum(axis=-1, keepdims=True) / width
        variance = np.einsum("...d,...d->...", x, x) / width
        x /= np.sqrt(variance + _NORM_EPSILON)[..., None]
        x *= self.weight
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class _Dense:
    """x·weight + bias; weight is (in, out), the transpose of the stored one."""

    weight: F32
    bias: F32

    def __call__(self, x: F32) -> F32:
        y: F32 = x @ self.weight
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class _Layer:
    """One transformer block; the three attention inputs are one matrix."""

    attention_in: _Dense
    attention_out: _Dense
    attention_norm: _Norm
    feed_in: _Dense
    feed_out: _Dense
    feed_norm: _Norm

    def __call__(self, x: F32, heads: int) -> F32:
        """x: (texts, tokens, width); the answer has the same shape."""
        texts, tokens, width = x.shape
        # Two dimensions in every dense product: NumPy would run three as many small ones.
        x = x.reshape(-1, width)
        query, key, value = (
            self.attention_in(x)
            .reshape(texts, tokens, 3, heads, width // heads)
            .transpose(2, 0, 3, 1, 4)
        )
        weights = query @ key.swapaxes(-1, -2)  # (texts, heads, tokens, tokens)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        seen = (weights @ value).swapaxes(1, 2).reshape(-1, width)

        y = self.attention_out(seen)
        y += x
        self.attention_norm.in_place(y)
        hidden = self.feed_in(y)
        gelu_in_place(hidden)
        z = self.feed_out(hidden)
        z += y
        return self.feed_norm.in_place(z).reshape(texts, tokens, width)


class Encoder:
    """The network: token ids to unit vectors. Holds weights only, so threads share it."""

    def __init__(self, tensors: dict[str, F32], heads: int = HEADS) -> None:
        """`tensors` under the names of Hugging Face's BertModel; DemoError where one lacks."""
        self.heads = heads
        try:
            self._words = tensors["embeddings.word_embeddings.weight"]
            self._places = (
                tensors["embeddings.position_embeddings.weight"]
                + tensors["embeddings.token_type_embeddings.weight"][0]
            )
            self._norm = _norm(tensors, "embeddings")
            self._layers: list[_Layer] = []
            while f"encoder.layer.{len(self._layers)}.output.dense.weight" in tensors:
                self._layers.append(_layer(tensors, len(self._layers), heads))
        except (KeyError, ValueError, IndexError) as error:
            raise DemoError(f"model.safetensors is not a BERT encoder: {error}") from error
        if not self._layers or self.dim % heads:
            raise DemoError("model.safetensors is not a BERT encoder: no layers, or odd width")

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._words.shape[1])

    def __call__(self, tokens: NDArray[np.int64]) -> F32:
        """Vectors (texts, dim) of unit length for token ids (texts, tokens), all of one
        length. Special tokens are the caller's to add."""
        x = self._words[tokens]
        x += self._places[: tokens.shape[1]]
        self._norm.in_place(x)
        for layer in self._layers:
            x = layer(x, self.heads)
        mean: F32 = x.mean(axis=1)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        return mean


def _norm(tensors: dict[str, F32], name: str) -> _Norm:
    return _Norm(tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"])


def _dense(tensors: dict[str, F32], name: str) -> _Dense:
    weight = np.ascontiguousarray(tensors[f"{name}.weight"].T)
    return _Dense(weight, tensors[f"{name}.bias"])


def _layer(tensors: dict[str, F32], number: int, heads: int) -> _Layer:
    at = f"encoder.layer.{number}"
    inputs = [_dense(tensors, f"{at}.attention.self.{n}") for n in ("query", "key", "value")]
    # Attention scores are divided by √(width of a head): done here once, on the queries.
    scale = np.float32(math.sqrt(heads / inputs[0].weight.shape[1]))
    inputs[0] = _Dense(inputs[0].weight * scale, inputs[0].bias * scale)
    return _Layer(
        _Dense(
            np.concatenate([d.weight for d in inputs], axis=1),
            np.concatenate([d.bias for d in inputs]),
        ),
        _dense(tensors, f"{at}.attention.output.dense"),
        _norm(tensors, f"{at}.attention.output"),
        _dense(tensors, f"{at}.intermediate.dense"),
        _dense(tensors, f"{at}.output.dense"),
        _norm(tensors, f"{at}.output"),
    )


class Model:
    """Tokenizer and encoder."""

    def __init__(self, weights: bytes, tokenizer: bytes) -> None:
        """From `model.safetensors` and `tokenizer.json`; DemoError where they do not fit."""
        self.encoder = Encoder(read_safetensors(weights))
        try:
            self._tokenizer = Tokenizer.from_str(tokenizer.decode())
        except Exception as error:  # the library raises bare Exception
            raise DemoError(f"tokenizer.json is damaged: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS_MAX)

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text, with [CLS] and [SEP], at most TOKENS_MAX."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]

    def embed(self, text: str) -> F32:
        """The vector (1, dim) of one text."""
        return self.encoder(np.array(self.tokens([text]), np.int64))
