"""Searches by recall: calibrate(), target_recall, monitor()."""

import itertools
import math
import signal
import threading
from pathlib import Path
from typing import Any

import lanewise
import numpy as np
import pytest
from conftest import nearest, vectors
from numpy.typing import NDArray


def clustered(n: int, dim: int, seed: int) -> NDArray[np.float32]:
    centres = np.random.default_rng(99).standard_normal((20, dim))
    rng = np.random.default_rng(seed)
    x = centres[rng.integers(0, 20, n)] + 0.5 * rng.standard_normal((n, dim))
    return x.astype(np.float32)


def recall(ids: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    return float(np.mean([len(set(a) & set(b)) for a, b in zip(ids, truth, strict=True)])) / len(
        truth[0]
    )


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "flat"])
def test_the_recall_that_is_asked_for_is_found(kind: str, tmp_path: Path) -> None:
    x, q = clustered(4000, 24, 1), clustered(500, 24, 2)
    truth, _ = nearest(x, q, "l2", 10)
    index = lanewise.Index(24, kind=kind, m=4, ef_construction=40).add(x)
    assert index.info()["recall_curve"] is None
    found = {target: index.search(q, 10, target_recall=target) for target in (0.8, 0.95, 1.0)}
    for target, result in found.items():
        assert recall(result.ids, truth) >= target - 0.02
    assert found[1.0].plan["exact"] == 500
    assert recall(found[1.0].ids, truth) == 1
    curve = index.info()["recall_curve"]
    if kind == "flat":
        assert curve == []
        return
    assert found[0.8].plan["distances"] < found[0.95].plan["distances"] < 500 * 4000 / 2
    knob = {"hnsw": "epsilon", "ivf": "nprobe"}[kind]
    assert {point["k"] for point in curve} == {1, 10, 100}
    assert list(curve[0]) == ["k", knob, "oversample", "recall", "recall_low", "distances"]
    # The curve is part of the file, and what it was however often it is measured.
    index.save(tmp_path / "x")
    assert lanewise.Index.open(tmp_path / "x").info()["recall_curve"] == curve
    assert index.calibrate(num_threads=1) == curve
    by_queries = index.calibrate(q, k=7, num_threads=2)
    assert {point["k"] for point in by_queries} == {7}
    assert index.info()["recall_curve"] == by_queries
    assert index.calibrate(list(q), k=[5, 6]) != by_queries
    # More came in than there were.
    index.add(clustered(4001, 24, 3))
    assert index.info()["recall_curve"] is None


def test_wrong_arguments_are_named() -> None:
    x = clustered(500, 8, 4)
    index = lanewise.Index(8).add(x)

    def refused(argument: str, call: Any, *args: Any, **kwargs: Any) -> None:
        with pytest.raises(lanewise.ArgumentError, match=argument) as raised:
            call(*args, **kwargs)
        assert raised.value.argument == argument

    for wrong in (0, -1, 1.5, math.nan, "much"):
        refused("target_recall", index.search, x[0], target_recall=wrong)
    refused("target_recall", index.search, x[0], target_recall=0.9, epsilon=0.1)
    refused("target_recall", index.search, x[0], target_recall=0.9, oversample=2)
    refused("queries", index.calibrate, x[:49])
    refused("queries", index.calibrate, x[:, :7])
    for wrong_k in (0, (), (10, 1), "ten", range(1, 10), itertools.count(1)):
        refused("k", index.calibrate, k=wrong_k)
    refused("num_threads", index.calibrate, num_threads=0)
    for wrong_rate in (-0.1, 1.1, math.nan, None, "often"):
        refused("rate", index.monitor, wrong_rate)
    refused("window", index.monitor, 0.5, window=0)
    assert index.info()["recall_curve"] is None


def test_progress_is_drawn(capfd: pytest.CaptureFixture[str]) -> None:
    lanewise.Index(8).add(clustered(1000, 8, 5)).calibrate(progress=True)
    assert "measuring [" in capfd.readouterr().err


def test_ctrl_c_ends_a_calibration() -> None:
    index = lanewise.Index(256, kind="ivf", nlist=200).add(clustered(60_000, 256, 6))

    def raising(*_: object) -> None:
        # What a handler asks of the same index meanwhile is refused, not waited for.
        with pytest.raises(lanewise.Error, match="in the middle of a change"):
            index.search(np.zeros(256, np.float32), target_recall=0.9)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raising)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            index.calibrate(num_threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert index.info()["recall_curve"] is None


def test_threads_that_search_first_share_a_curve() -> None:
    x = clustered(3000, 16, 7)
    index = lanewise.Index(16).add(x)
    found: list[NDArray[np.int64]] = []
    threads = [
        threading.Thread(target=lambda: found.append(index.search(x[:20], target_recall=0.9).ids))
        for _ in range(4)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 4
    assert all((ids == found[0]).all() for ids in found)


def test_a_monitor_sees_the_recall_of_what_runs() -> None:
    x, q = clustered(5000, 24, 8), clustered(2000, 24, 9)
    truth, _ = nearest(x, q, "l2", 10)
    index = lanewise.Index(24, m=4, ef_construction=20).add(x)
    nothing = index.recall_estimate()
    assert math.isnan(nothing.recall)
    assert nothing[1:] == (0, 1, 0)
    index.monitor(rate=0.2, seed=1)
    got = recall(index.search(q, 10, ef_search=10).ids, truth)
    estimate = index.recall_estimate()
    assert isinstance(estimate, lanewise.RecallEstimate)
    assert 300 < estimate.queries < 500
    assert 0.3 < estimate.low <= got <= estimate.high < 1
    assert estimate.low < estimate.recall < estimate.high
    # Harder searches show, as the last 1000 sampled count; one by one as in a batch.
    for one in q[:50]:
        index.search(one, 10, ef_search=10)
    assert index.recall_estimate().queries > estimate.queries
    index.monitor(rate=1, window=500)
    index.search(q[:500], 10, ef_search=10)
    low = index.recall_estimate()
    index.search(q[:500], 10, ef_search=200)
    high = index.recall_estimate()
    assert (low.queries, high.queries) == (500, 500)
    assert high.low > low.high
    assert abs(low.recall - recall(index.search(q[:500], 10, ef_search=10).ids, truth[:500])) < 1e-9
    index.monitor(rate=0)
    index.search(q)
    assert index.recall_estimate().queries == 0


def test_monitors_know_filters_and_exact_answers() -> None:
    x = vectors("f32", 2000, 12)
    index = lanewise.Index(12).add(x)
    index.monitor(rate=1)
    index.search(x[:30], 5, filter=lambda ids: ids % 2 == 0, ef_search=300)
    index.search(x[:30], 5, filter=[1, 2, 3, 4, 5, 6])
    estimate = index.recall_estimate()
    assert estimate.queries == 60
    assert estimate.recall > 0.95
