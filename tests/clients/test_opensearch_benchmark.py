"""opensearch-benchmark from end to end, offline: it writes a small data set, merges, warms up,
searches, and judges the recall itself."""

import csv
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
from exact import scores, vectors
from node import ROOT

PROGRAM = Path(os.environ.get("OSB", ROOT / ".venv-clients/benchmark/bin/opensearch-benchmark"))
WORKLOAD = Path(__file__).parent / "workload"
COUNT = 2000
QUERIES = 50


def test_vector_search(url: str, tmp_path: Path) -> None:
    base, queries = vectors(COUNT, 8), vectors(QUERIES, 8, seed=2)
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file["train"], file["test"] = base, queries
        found = [np.argsort(-scores("l2", base, query), kind="stable")[:100] for query in queries]
        file["neighbors"] = np.array(found)
    results = tmp_path / "results.csv"
    command = [
        PROGRAM,
        "run",
        "--offline",
        "--pipeline",
        "benchmark-only",
        "--kill-running-processes",
    ]
    command += ["--workload-path", WORKLOAD, "--target-hosts", url.removeprefix("http://")]
    command += ["--workload-params", f"data_set:{tmp_path / 'data.hdf5'}"]
    command += ["--results-format", "csv", "--results-file", results]
    # It keeps its files in the home folder.
    home = {**os.environ, "HOME": str(tmp_path), "BENCHMARK_HOME": str(tmp_path)}
    done = subprocess.run(command, env=home, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    with results.open() as file:
        told = {(row["Metric"], row["Task"]): row["Value"] for row in csv.DictReader(file)}
    for task in ("bulk-index", "search"):
        assert float(told["error rate", task]) == 0
    assert float(told["Mean recall@k", "search"]) > 0.99
    assert float(told["Mean recall@1", "search"]) > 0.99
