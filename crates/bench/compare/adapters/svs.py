"""Intel SVS: Vamana over floats, bytes, and its compressed forms.

LVQ (locally adaptive quantisation, Aguerrebere et al., 2023) and LeanVec (a linear
projection besides; Tepper et al., 2024) run on Intel's processors only: elsewhere they
end the process, and the row says so.
"""

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .protocol import EFS, Parameters, Setting, bytes_u8, floats, sweep


class Svs:
    """`svs.Vamana`; built in its two passes.

    `codes`: f32, f16, u8, or lvqA, lvqAxB (A bits, and B more of the rest to rank by),
    leanvec8x8 (half the dimensions in 8 bits to walk by, all in 8 bits to rank by).
    """

    def __init__(self, codes: str) -> None:
        import svs

        self.svs, self.codes = svs, codes
        self.index: Any = None

    def release(self) -> str:
        return f"scalable-vs {version('scalable-vs')}"

    def prepare(self, rows: np.ndarray, metric: str) -> np.ndarray:
        return bytes_u8(rows) if self.codes == "u8" else floats(rows)

    def build(self, rows: np.ndarray, metric: str, parameters: Parameters, threads: int) -> None:
        self.index = None
        built = self.svs.VamanaBuildParameters(
            alpha=parameters.alpha,
            graph_max_degree=parameters.degree,
            window_size=parameters.ef_construction,
        )
        with tempfile.TemporaryDirectory() as folder:
            self.index = self.svs.Vamana.build(
                built, self._data(rows, Path(folder)), self.svs.DistanceType.L2, threads
            )

    def _data(self, rows: np.ndarray, folder: Path) -> Any:
        if self.codes == "f16":
            return rows.astype(np.float16)
        if not self.codes.startswith(("lvq", "leanvec")):
            return rows
        # The compressed forms are only made from files.
        path = str(folder / "rows.fvecs")
        self.svs.write_vecs(rows, path)
        plain = self.svs.VectorDataLoader(path, self.svs.DataType.float32, dims=rows.shape[1])
        if self.codes.startswith("leanvec"):
            return self.svs.LeanVecLoader(plain, leanvec_dims=rows.shape[1] // 2)
        primary, _, residual = self.codes.removeprefix("lvq").partition("x")
        return self.svs.LVQLoader(plain, primary=int(primary), residual=int(residual or 0))

    def settings(self) -> list[Setting]:
        return sweep(window=EFS)

    def configure(self, setting: Setting, threads: int) -> None:
        chosen = self.index.search_parameters
        chosen.buffer_config = self.svs.SearchBufferConfig(setting["window"])
        self.index.search_parameters = chosen
        self.index.num_threads = threads

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        return self.index.search(queries, k)[0].astype(np.int64)

    def own_bytes(self) -> float | None:
        return None

    def kernels(self) -> str:
        return ""
