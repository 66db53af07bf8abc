"""The compiled module; use it as `lanewise`. The documentation is in the module itself: `help(lanewise.Index)`."""

import os
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

@final
class Index:
    def __new__(
        cls,
        dim: int,
        metric: Literal["l2", "ip", "cosine", "hamming"] | None = None,
        dtype: Literal["f32", "i8", "bits"] = "f32",
        kind: Literal["hnsw", "flat"] = "hnsw",
        m: int = 16,
        ef_construction: int = 200,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def add(
        self,
        x: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        progress: bool = False,
        num_threads: int | None = None,
    ) -> Self: ...
    def search(
        self,
        q: ArrayLike,
        k: int = 10,
        *,
        ef_search: int = 64,
        num_threads: int | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...
    def info(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def m(self) -> int: ...
    @property
    def ef_construction(self) -> int: ...
    @property
    def seed(self) -> int: ...
