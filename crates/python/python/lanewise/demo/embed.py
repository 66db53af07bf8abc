"""Many texts to vectors: batches of one length on every core, kept in the cache.

Texts are sorted by their length in tokens and cut into chunks; a finished chunk is
written to the cache, so a run that is stopped loses one chunk at most and the next one
goes on from there. NumPy's matrix products get one thread each, and the parallelism
is over batches: two threads of two would fight for the cores (measured: 1.7 times
slower on two cores).
"""

import contextlib
import hashlib
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from . import cache
from .model import F32
from .progress import Progress

CHUNK_LEN = 2048
# About what a core's L2 holds of one layer's intermediate values.
BATCH_TOKENS_MAX = 512


class Encodes(Protocol):
    """What `embed` needs of a network; `model.Encoder` is one."""

    @property
    def dim(self) -> int: ...

    def __call__(self, tokens: NDArray[np.int64], /) -> F32: ...


def threads_len() -> int:
    """Cores that this process may use: its affinity, and its container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            allowed = min(allowed, math.ceil(int(quota) / int(period)))
    return max(allowed, 1)


def key(texts: list[str], model_name: str) -> str:
    """Names the vectors of these texts under this model."""
    digest = hashlib.sha256(model_name.encode())
    for text in texts:
        digest.update(b"\0" + text.encode())
    return digest.hexdigest()[:16]


def cached(folder: Path, name: str, shape: tuple[int, int]) -> F32 | None:
    """Vectors that an earlier `embed` finished under this name, or None."""
    return cache.read_array(folder / f"vectors-{name}.npy", shape)


def embed(encoder: Encodes, tokens: list[list[int]], folder: Path, name: str) -> F32:
    """Vectors (texts, dim) for the token ids of texts, in their order.

    `name` comes from `key`; finished vectors are stored under it in `folder`.
    """
    lengths = np.array([len(ids) for ids in tokens])
    order = np.argsort(lengths, kind="stable")
    chunks = [order[i : i + CHUNK_LEN] for i in range(0, len(order), CHUNK_LEN)]
    paths = [folder / f"vectors-{name}-part{i:04}.npy" for i in range(len(chunks))]
    vectors = np.empty((len(tokens), encoder.dim), np.float32)

    missing: list[int] = []
    for i, chunk in enumerate(chunks):
        part = cache.read_array(paths[i], (len(chunk), encoder.dim))
        if part is None:
            missing.append(i)
        else:
            vectors[chunk] = part

    def run(batch: NDArray[np.intp]) -> int:
        vectors[batch] = encoder(np.array([tokens[i] for i in batch], np.int64))
        return int(lengths[batch].sum())

    total = int(lengths.sum())
    done = total - sum(int(lengths[chunks[i]].sum()) for i in missing)
    pool = ThreadPoolExecutor(threads_len())
    try:
        with threadpool_limits(1), Progress("vectors", total, done) as bar:
            for i in missing:
                for tokens_done in pool.map(run, batches(chunks[i], lengths)):
                    bar.advance(tokens_done)
                cache.write_array(paths[i], vectors[chunks[i]])
    finally:
        pool.shutdown(cancel_futures=True)

    cache.write_array(folder / f"vectors-{name}.npy", vectors)
    for path in paths:
        cache.remove(path)
    return vectors


def batches(chunk: NDArray[np.intp], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Cuts a chunk, sorted by length, into batches of one length that hold at most
    BATCH_TOKENS_MAX tokens (and at least one text)."""
    begin = 0
    while begin < len(chunk):
        length = lengths[chunk[begin]]
        same = int(np.searchsorted(lengths[chunk], length, side="right"))
        end = min(same, begin + max(1, BATCH_TOKENS_MAX // int(length)))
        yield chunk[begin:end]
        begin = end
