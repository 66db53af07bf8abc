"""ScaNN: a tree of lists, 4-bit codes in registers, and re-ranking by float32.

SOAR (Sun et al., 2023) puts vectors into a second list; it needs inner products, so it
is for unit vectors only.
"""

from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import NPROBES, K, NotApplicable, Parameters, Setting, floats, sweep

REORDERS = (20, 40, 80, 160, 320)


class Scann:
    """`scann.scann_ops_pybind`; its batch calls for one and for several threads differ."""

    def __init__(self, soar: bool = False) -> None:
        import scann

        self.module, self.soar = scann.scann_ops_pybind, soar
        self.index: Any = None
        self.setting: Setting = {}
        self.threads = 0

    def release(self) -> str:
        return f"scann {version('scann')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        if self.soar and metric != "cosine":
            raise NotApplicable("needs inner products of unit vectors")
        return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        measure = "dot_product" if self.soar else "squared_l2"
        builder = self.module.builder(rows, K, measure).set_n_training_threads(threads)
        extra = {"soar_lambda": 1.5} if self.soar else {}
        builder = builder.tree(parameters.lists(len(rows)), NPROBES[0], **extra)
        self.index = builder.score_ah(2).reorder(REORDERS[0]).build()

    def settings(self) -> list[Setting]:
        return sweep(leaves=NPROBES, reorder=REORDERS)

    def configure(self, setting: Setting, threads: int) -> None:
        self.setting, self.threads = setting, threads
        self.index.set_num_threads(threads)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        more = {
            "final_num_neighbors": k,
            "pre_reorder_num_neighbors": self.setting["reorder"],
            "leaves_to_search": self.setting["leaves"],
        }
        if len(queries) == 1:
            return self.index.search(queries[0], **more)[0][None].astype(np.int64)
        several = self.index.search_batched_parallel
        call = self.index.search_batched if self.threads == 1 else several
        return call(queries, **more)[0].astype(np.int64)

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return ""
