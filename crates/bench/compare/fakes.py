"""Libraries for the tests of the harness: one that works and some that fail, each its way."""

import os
import sys
import time

import numpy as np

from .adapters.protocol import NotApplicable, Parameters, Setting, sweep


class Fake:
    """Exact search over the first `share` of the vectors, so recall is about `share`."""

    def __init__(self) -> None:
        self.base = np.empty(0)
        self.share = 0.0

    def release(self) -> str:
        return "fake 1.0"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return rows.astype(np.float32)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.base = rows.copy()

    def settings(self) -> list[Setting]:
        return sweep(share=(0.5, 0.8, 0.92, 1.0))

    def configure(self, setting: Setting, threads: int) -> None:
        self.share = setting["share"]

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        seen = self.base[: int(len(self.base) * self.share)]
        return np.array([((seen - query) ** 2).sum(axis=1).argsort()[:k] for query in queries])

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return ""


class Few(Fake):
    """Has fewer settings than others."""

    def settings(self) -> list[Setting]:
        return sweep(share=(0.92, 1.0))


class Unknown(Fake):
    """Its library does not know the configuration."""

    def __init__(self) -> None:
        raise TypeError("got an unexpected keyword argument 'code'")


class Stranger(Fake):
    """The data are not for it."""

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        raise NotApplicable("takes other data")


class Dying(Fake):
    """Ends the process while it builds, as some do, and says why on stderr only."""

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        print("not supported on this machine", file=sys.stderr, flush=True)
        os._exit(3)


class Hanging(Fake):
    """Never gets through its build."""

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        time.sleep(600)


class Failing(Fake):
    """Builds, and raises when it is asked for single queries."""

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        if len(queries) == 1:
            raise RuntimeError("one is none")
        return super().search(queries, k)
