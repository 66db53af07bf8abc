"""What the tests share: seeded data, distances by NumPy, and Python processes of their own."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

METRICS = {
    "f32": ("l2", "ip", "cosine"),
    "i8": ("l2", "ip", "cosine"),
    "bits": ("hamming",),
}
SPACES = [(dtype, metric) for dtype, metrics in METRICS.items() for metric in metrics]


def vectors(dtype: str, n: int, dim: int, seed: int = 0) -> NDArray[Any]:
    """Random vectors as users bring them: whole floats (sums are exact), int8, bool."""
    rng = np.random.default_rng(seed)
    if dtype == "bits":
        return rng.random((n, dim)) < 0.5
    # Without zero, so that every vector has a direction.
    values = rng.integers(1, 100, (n, dim)) * rng.choice([-1, 1], (n, dim))
    return values.astype(np.float32 if dtype == "f32" else np.int8)


def distances(x: NDArray[Any], q: NDArray[Any], metric: str) -> NDArray[np.float64]:
    """All distances by definition, (len(q), len(x))."""
    x, q = x.astype(np.float64), q.astype(np.float64)
    dots = q @ x.T
    if metric == "ip":
        return -dots
    if metric == "cosine":
        norms = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)[None]
        return 1 - dots / norms
    # Squared differences of bits are differing bits.
    return (q**2).sum(1)[:, None] + (x**2).sum(1)[None] - 2 * dots


def nearest(
    x: NDArray[Any], q: NDArray[Any], metric: str, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The exact answer; equal distances in the order of ids."""
    all_distances = distances(x, q, metric)
    ids = np.argsort(all_distances, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(all_distances, ids, axis=1)


@pytest.fixture
def python() -> Callable[..., str]:
    """Runs code in a Python of its own; what it printed. An exit code but 0 fails the test."""

    def run(
        code: str, *args: object, timeout: float = 120, env: dict[str, str] | None = None
    ) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=env,
            check=False,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
