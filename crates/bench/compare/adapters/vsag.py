"""VSAG: its HGraph over float32 or codes, ranked at last by float32."""

import json
from importlib.metadata import version
from typing import Any

import numpy as np

from .protocol import EFS, Parameters, Setting, floats, sweep


class Vsag:
    """`pyvsag.Index("hgraph")`. It has no batch call, and its calls hold Python's lock, so
    several threads would gain nothing: queries are looped over whatever one asks."""

    def __init__(self, codes: str) -> None:
        import pyvsag

        self.module, self.codes = pyvsag, codes
        self.index: Any = None
        self.setting = ""

    def release(self) -> str:
        return f"pyvsag {version('pyvsag')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        ranked = {"use_reorder": True, "precise_quantization_type": "fp32"}
        options = {
            "dtype": "float32",
            "metric_type": "l2",
            "dim": rows.shape[1],
            "index_param": {
                "base_quantization_type": self.codes,
                "max_degree": parameters.degree,
                "ef_construction": parameters.ef_construction,
                "build_thread_count": threads,
                **(ranked if self.codes != "fp32" else {}),
            },
        }
        self.index = self.module.Index("hgraph", json.dumps(options))
        self.index.build(rows.reshape(-1), np.arange(len(rows)), *rows.shape)

    def settings(self) -> list[Setting]:
        return sweep(ef_search=EFS)

    def configure(self, setting: Setting, threads: int) -> None:
        self.setting = json.dumps({"hgraph": setting})

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return np.array([self.index.knn_search(query, k, self.setting)[0] for query in queries])

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return ""
