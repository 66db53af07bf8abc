"""opensearch-benchmark from end to end, offline: it writes a small data set, merges, warms up,
searches, and judges the recall itself."""

import csv
import json
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from exact import scores, vectors
from node import ROOT

PROGRAM = Path(os.environ.get("OSB", ROOT / ".venv-clients/benchmark/bin/opensearch-benchmark"))
WORKLOAD = Path(__file__).parent / "workload"
COUNT = 2000
QUERIES = 50


def data_set(folder: Path) -> Path:
    base, queries = vectors(COUNT, 8), vectors(QUERIES, 8, seed=2)
    with h5py.File(folder / "data.hdf5", "w") as file:
        file["train"], file["test"] = base, queries
        found = [np.argsort(-scores("l2", base, query), kind="stable")[:100] for query in queries]
        file["neighbors"] = np.array(found)
    return folder / "data.hdf5"


def run(url: str, workload: Path, parameters: dict[str, object], folder: Path) -> dict:
    """Its figures by metric and task."""
    (folder / "parameters.json").write_text(json.dumps(parameters))
    results = folder / "results.csv"
    command = [PROGRAM, "run", "--offline", "--pipeline", "benchmark-only"]
    command += ["--workload-path", workload, "--target-hosts", url.removeprefix("http://")]
    command += ["--workload-params", folder / "parameters.json"]
    command += ["--results-format", "csv", "--results-file", results]
    # It keeps its files in the home folder.
    home = {**os.environ, "HOME": str(folder), "BENCHMARK_HOME": str(folder)}
    done = subprocess.run(command, env=home, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    with results.open() as file:
        return {(row["Metric"], row["Task"]): row["Value"] for row in csv.DictReader(file)}


def test_vector_search(url: str, tmp_path: Path) -> None:
    told = run(url, WORKLOAD, {"data_set": str(data_set(tmp_path))}, tmp_path)
    for task in ("bulk-index", "search"):
        assert float(told["error rate", task]) == 0
    assert float(told["Mean recall@k", "search"]) > 0.99
    assert float(told["Mean recall@1", "search"]) > 0.99


@pytest.mark.skipif(
    "OSB_WORKLOADS" not in os.environ,
    reason="OSB_WORKLOADS is no checkout of opensearch-benchmark-workloads",
)
def test_its_own_workload(url: str, tmp_path: Path) -> None:
    data = str(data_set(tmp_path))
    told = run(
        url,
        Path(os.environ["OSB_WORKLOADS"]) / "vectorsearch",
        {
            "target_index_name": "target_index",
            "target_field_name": "target_field",
            "target_index_body": "indices/lucene-index.json",
            "target_index_primary_shards": 1,
            "target_index_replica_shards": 0,
            "target_index_dimension": 8,
            "target_index_space_type": "l2",
            "target_index_bulk_size": 100,
            "target_index_bulk_index_data_set_path": data,
            "target_index_bulk_indexing_clients": 2,
            "hnsw_ef_search": 100,
            "hnsw_ef_construction": 256,
            "hnsw_m": 16,
            "id_field_name": "_id",
            "query_k": 10,
            "query_body": {"docvalue_fields": ["_id"], "stored_fields": "_none_"},
            "query_data_set_path": data,
            "neighbors_data_set_path": data,
        },
        tmp_path,
    )
    for task in ("custom-vector-bulk", "prod-queries"):
        assert float(told["error rate", task]) == 0
    assert float(told["Mean recall@k", "prod-queries"]) > 0.99
