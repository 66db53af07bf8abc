"""The compiled module; use it as `lanewise`.

The documentation is in the module itself: `help(lanewise.Index)`.
"""

import builtins
import os
import pathlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import (
    Any,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    Unpack,
    final,
    type_check_only,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .results import Found, FoundRange, Group, RecallEstimate

__all__ = ["Engine", "Filter", "Index", "Pages", "Table", "__version__", "command_line", "end_pool"]

__version__: str

def command_line(argv: Sequence[str]) -> int: ...
def end_pool() -> None: ...

# How hard to look, as search() has it.
@type_check_only
class _Effort(TypedDict, total=False):
    ef_search: SupportsIndex
    epsilon: SupportsFloat | None
    nprobe: SupportsIndex
    oversample: SupportsFloat | None
    num_threads: SupportsIndex | None

@final
class Filter:
    def __len__(self) -> int: ...

@final
class Pages:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Found: ...

@final
class Index:
    def __new__(
        cls,
        dim: SupportsIndex,
        metric: str | None = None,
        dtype: str = "f32",
        kind: str = "hnsw",
        code: str = "none",
        m: SupportsIndex = 16,
        ef_construction: SupportsIndex = 200,
        seed: SupportsIndex = 0,
        nlist: SupportsIndex = 0,
        *,
        memory_limit: SupportsIndex | None = None,
    ) -> Self: ...
    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, memory_limit: SupportsIndex | None = None
    ) -> Self: ...
    @staticmethod
    def predict_open(path: str | os.PathLike[str]) -> dict[str, int]: ...
    def predict_add(
        self, n: SupportsIndex, *, ids: bool = False, num_threads: SupportsIndex | None = None
    ) -> dict[str, int]: ...
    @property
    def memory_limit(self) -> int | None: ...
    @memory_limit.setter
    def memory_limit(self, memory_limit: SupportsIndex | None) -> None: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        progress: bool = False,
        num_threads: SupportsIndex | None = None,
    ) -> Self: ...
    def remove(self, ids: ArrayLike, *, num_threads: SupportsIndex | None = None) -> int: ...
    def repair(self, *, num_threads: SupportsIndex | None = None) -> None: ...
    def filter(self, chosen: ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]) -> Filter: ...
    def ids(self) -> NDArray[np.int64]: ...
    def add(
        self,
        x: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        progress: bool = False,
        num_threads: SupportsIndex | None = None,
    ) -> Self: ...
    def search(
        self,
        q: ArrayLike,
        k: SupportsIndex = 10,
        *,
        ef_search: SupportsIndex = 64,
        epsilon: SupportsFloat | None = None,
        nprobe: SupportsIndex = 16,
        oversample: SupportsFloat | None = None,
        target_recall: SupportsFloat | None = None,
        filter: Filter | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Found: ...
    def range_search(
        self,
        q: ArrayLike,
        radius: SupportsFloat,
        *,
        limit: SupportsIndex | None = None,
        filter: Filter | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        **effort: Unpack[_Effort],
    ) -> FoundRange: ...
    def search_by_id(
        self,
        ids: ArrayLike,
        k: SupportsIndex = 10,
        *,
        filter: Filter | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        **effort: Unpack[_Effort],
    ) -> Found: ...
    def search_groups(
        self,
        q: ArrayLike,
        k: SupportsIndex,
        groups: Callable[[int], Hashable] | Mapping[int, Hashable] | ArrayLike,
        *,
        per_group: SupportsIndex = 1,
        filter: Filter | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        **effort: Unpack[_Effort],
    ) -> list[Group] | list[list[Group]]: ...
    def pages(
        self,
        q: ArrayLike,
        page_size: SupportsIndex = 10,
        *,
        filter: Filter | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        **effort: Unpack[_Effort],
    ) -> Pages: ...
    def get(self, ids: ArrayLike) -> NDArray[Any]: ...
    def calibrate(
        self,
        queries: ArrayLike | None = None,
        *,
        k: SupportsIndex | Sequence[SupportsIndex] | None = None,
        progress: bool = False,
        num_threads: SupportsIndex | None = None,
    ) -> list[dict[str, Any]]: ...
    def monitor(
        self,
        rate: SupportsFloat = 0.01,
        *,
        window: SupportsIndex = 1000,
        seed: SupportsIndex = 0,
    ) -> None: ...
    def recall_estimate(self) -> RecallEstimate: ...
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
    def code(self) -> str: ...
    @property
    def m(self) -> int: ...
    @property
    def ef_construction(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def nlist(self) -> int: ...

@final
class Table:
    @staticmethod
    def create(
        path: str | os.PathLike[str],
        schema: Any,
        *,
        num_threads: SupportsIndex | None = None,
        memory_limit: int | str | None = None,
    ) -> Table: ...
    @staticmethod
    def open(
        path: str | os.PathLike[str],
        *,
        num_threads: SupportsIndex | None = None,
        memory_limit: int | str | None = None,
    ) -> Table: ...
    def close(self, *, wait: bool = True) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def path(self) -> pathlib.Path: ...
    @property
    def schema(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def get(
        self, ids: Sequence[str], fields: Sequence[str]
    ) -> list[tuple[int, int, dict[str, Any], dict[str, NDArray[Any]]] | None]: ...
    def memory(self) -> dict[str, Any]: ...
    def segments(self) -> list[tuple[int, bool, int, int, list[str]]]: ...
    def trouble(self) -> str | None: ...
    def settings(self) -> dict[str, Any]: ...
    def change_settings(self, changes: dict[str, Any]) -> None: ...
    def sync(self) -> None: ...
    def flush(self) -> None: ...
    def merge(self, changes: dict[str, Any]) -> tuple[int, list[int]] | None: ...
    def force_merge(self, segments: SupportsIndex) -> None: ...
    def put_many(
        self,
        documents: Sequence[Any],
        ids: Sequence[str | None] | None,
        vectors: Sequence[tuple[str, ArrayLike]],
        *,
        if_absent: bool = False,
        if_seq: int | None = None,
        progress: bool = False,
    ) -> dict[str, Any]: ...
    def load(
        self,
        documents: Sequence[Any],
        ids: Sequence[str | None] | None,
        vectors: Sequence[tuple[str, ArrayLike]],
        *,
        progress: bool = False,
    ) -> int: ...
    def delete(
        self, ids: Sequence[str], *, if_seq: int | None = None
    ) -> list[tuple[int, int, str]]: ...
    def search(
        self,
        request: dict[str, Any],
        vectors: Sequence[tuple[str, ArrayLike, int]],
        effort: dict[str, Any],
        fields: Sequence[str],
        *,
        exact: bool = False,
        timeout: SupportsFloat | None = None,
        documents: bool = True,
    ) -> dict[str, Any]: ...

@final
class Engine:
    @staticmethod
    def open(
        folder: str | os.PathLike[str],
        *,
        memory_limit: int | str | None = None,
        open_tables: SupportsIndex | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Engine: ...
    def create(self, name: str, schema: Any) -> Table: ...
    def table(self, name: str) -> Table: ...
    def retry(self, name: str) -> Table: ...
    def drop(self, name: str) -> None: ...
    def names(self) -> list[str]: ...
    def list(self) -> builtins.list[tuple[str, str, int | None, str | None]]: ...
    def memory(self) -> dict[str, Any]: ...
    def close(self, *, wait: bool = True) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def path(self) -> pathlib.Path: ...
