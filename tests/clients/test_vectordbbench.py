"""VectorDBBench's oss_opensearch client from end to end, offline: it writes a small data set,
merges, searches one by one and side by side, and judges the recall itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from exact import scores, vectors
from opensearchpy import OpenSearch

COUNT = 2000
QUERIES = 50
DIM = 8
K = 10


def table(rows: np.ndarray) -> pa.Table:
    ids = np.arange(len(rows), dtype=np.int64)
    return pa.table({"id": ids, "emb": pa.array(rows.tolist(), pa.list_(pa.float32()))})


def test_performance_of_a_data_set_of_ones_own(url: str, index: str, tmp_path: Path) -> None:
    base, queries = vectors(COUNT, DIM), vectors(QUERIES, DIM, seed=2)
    data = tmp_path / "data/small/files"
    data.mkdir(parents=True)
    pq.write_table(table(base), data / "train.parquet")
    pq.write_table(table(queries), data / "test.parquet")
    found = [
        np.argsort(-scores("l2", base, query), kind="stable")[:K].tolist() for query in queries
    ]
    ids = np.arange(QUERIES, dtype=np.int64)
    pq.write_table(pa.table({"id": ids, "neighbors_id": found}), data / "neighbors.parquet")

    program = Path(sys.executable).parent / "vectordbbench"
    host, port = url.removeprefix("http://").split(":")
    command = f"{program} ossopensearch --host {host} --port {port} --index-name {index}"
    command += " --engine lucene --metric-type l2 --m 16 --ef-construction 128 --ef-search 100"
    command += f" --k {K} --num-concurrency 1,2 --concurrency-duration 2 --force-merge-enabled true"
    command += " --case-type PerformanceCustomDataset --custom-case-name small"
    command += f" --custom-dataset-name small --custom-dataset-dir files --custom-dataset-dim {DIM}"
    command += f" --custom-dataset-size {COUNT} --custom-dataset-metric-type L2"
    command += " --custom-dataset-file-count 1 --skip-custom-dataset-use-shuffled"
    command += " --custom-dataset-with-gt"
    places = {
        "DATASET_LOCAL_DIR": str(tmp_path / "data"),
        "RESULTS_LOCAL_DIR": str(tmp_path / "results"),
        "LOG_FILE": str(tmp_path / "log"),
    }
    done = subprocess.run(
        command.split(),
        cwd=tmp_path,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (page,) = (tmp_path / "results").rglob("*.json")
    (result,) = json.loads(page.read_text())["results"]
    figures = result["metrics"]
    assert figures["recall"] > 0.99, done.stderr[-3000:]
    assert figures["qps"] > 0
    assert figures["serial_latency_p99"] > 0
    with OpenSearch(url) as client:
        assert client.count(index=index)["count"] == COUNT
