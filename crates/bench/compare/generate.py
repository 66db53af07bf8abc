"""Large data sets made from a seed: SIFT-like vectors and bit vectors with planted structure.

Real descriptors and embeddings lie near a curved surface of some fifteen dimensions
(their local intrinsic dimension), fill it unevenly, and have no gaps in it. Both laws
start from such a surface: a few hidden coordinates, Gaussian, under a random spread of
each vector (heavy tails: dense middle, thin rim).

**What they flatter.** The surface is smooth and in one piece, so no search by graph gets
lost on it and none of the pathologies of real data (near-duplicates, hubs, far outliers)
occurs: a graph needs less care here than on real data. SIFT-like data has no clusters
that lists could exploit; the bits have planted ones, which overlap: lists find them more
easily than graphs profit by them. Compare graph with graph, lists with lists.

Rows come in blocks, each from its own seed, so that the first n rows are the same however
many are made, and memory stays small. Matrix products of another machine may round some
values otherwise.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

BLOCK_LEN = 1 << 16
SEED = 20_261_121
QUERIES_BLOCK = 1 << 30
"""The number of the block that holds the queries: of the same law, never in the base."""

Law = Callable[[np.random.Generator, int], np.ndarray]


def write(scratch: Path, law: Law, columns: int, base_len: int, queries_len: int) -> None:
    """base.npy and queries.npy of a law over uint8 rows of `columns`, block by block."""
    np.save(scratch / "queries.npy", law(_generator(QUERIES_BLOCK), queries_len))
    base = np.lib.format.open_memmap(
        scratch / "base.npy", mode="w+", dtype=np.uint8, shape=(base_len, columns)
    )
    for start, rows in blocks(law, base_len):
        base[start : start + len(rows)] = rows
    base.flush()


def blocks(law: Law, base_len: int) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, rows) of the base. A block is always made whole and then cut."""
    for number, start in enumerate(range(0, base_len, BLOCK_LEN)):
        yield start, law(_generator(number), BLOCK_LEN)[: base_len - start]


def sift_like() -> Law:
    """128 non-negative whole numbers a vector, like SIFT descriptors; compared by L2.

    14 hidden coordinates pass through 256 random tanh units (the surface bends) into 128
    sums; noise is added, a third falls below zero and is cut to it, as SIFT's histograms
    have empty bins; the vector is scaled to length 512 and rounded, as SIFT's are.
    """
    hidden, units, columns = 14, 256, 128
    fixed = np.random.default_rng(SEED)
    into = fixed.standard_normal((hidden, units), np.float32) * np.float32(1.5 / hidden**0.5)
    offset = fixed.standard_normal(units, np.float32) / 2
    out = fixed.standard_normal((units, columns), np.float32) / np.float32(units**0.5)

    def law(random: np.random.Generator, rows_len: int) -> np.ndarray:
        rows = np.tanh(_hidden(random, rows_len, hidden) @ into + offset) @ out
        rows += np.float32(0.05) * random.standard_normal(rows.shape, np.float32)
        rows = np.maximum(rows + np.float32(0.25), 0)
        rows *= 512 / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.minimum(np.rint(rows), 255).astype(np.uint8)

    return law


def planted_bits(bits: int = 768) -> Law:
    """Bit vectors, eight bits a byte, like binary-quantised embeddings; compared by Hamming.

    24 hidden coordinates around one of 4,000 centres: centres lie 6.9 from each other,
    vectors 3.4 from theirs, so that clusters touch (of the ten nearest of a million, one or
    two are of other clusters); bit i says on which side of a random plane through 0 the
    vector is, so Hamming distance follows the angle; then every bit is flipped with
    probability 0.02.
    """
    hidden, centres_len = 24, 4_000
    fixed = np.random.default_rng(SEED + 1)
    planes = fixed.standard_normal((hidden, bits), np.float32)
    centres = fixed.standard_normal((centres_len, hidden), np.float32)

    def law(random: np.random.Generator, rows_len: int) -> np.ndarray:
        around = centres[random.integers(centres_len, size=rows_len)]
        sides = (around + np.float32(0.7) * _hidden(random, rows_len, hidden)) @ planes > 0
        sides ^= random.random(sides.shape, np.float32) < 0.02
        return np.packbits(sides, axis=1, bitorder="little")

    return law


def _hidden(random: np.random.Generator, rows_len: int, hidden: int) -> np.ndarray:
    spread = np.sqrt(random.gamma(3, 1 / 3, (rows_len, 1))).astype(np.float32)
    return random.standard_normal((rows_len, hidden), np.float32) * spread


def _generator(block: int) -> np.random.Generator:
    return np.random.default_rng([SEED, block])
