"""Add and search: every dtype, metric and kind against NumPy."""

import copy
import pickle

import lanewise
import numpy as np
import pytest
from conftest import METRICS, SPACES, distances, nearest, vectors


@pytest.mark.parametrize(("dtype", "metric"), SPACES)
@pytest.mark.parametrize("dim", [1, 7, 64, 100])
def test_flat_is_exact(dtype: str, metric: str, dim: int) -> None:
    x, q = vectors(dtype, 700, dim, seed=1), vectors(dtype, 70, dim, seed=2)
    index = lanewise.Index(dim, metric=metric, dtype=dtype, kind="flat").add(x)
    ids, found = index.search(q, 20)
    expected_ids, expected = nearest(x, q, metric, 20)
    assert ids.dtype == np.int64
    assert found.dtype == np.float32
    if metric == "cosine":
        # Rounding decides between near ones: the distances must agree, and be those of the ids.
        np.testing.assert_allclose(found, expected, atol=2e-6)
        true = np.take_along_axis(distances(x, q, metric), ids, axis=1)
        np.testing.assert_allclose(found, true, atol=2e-6)
        assert all(len(set(row)) == 20 for row in ids.tolist())
    else:
        np.testing.assert_array_equal(found, expected.astype(np.float32))
        np.testing.assert_array_equal(ids, expected_ids)


@pytest.mark.parametrize(("dtype", "metric"), SPACES)
def test_hnsw_finds_nearly_all(dtype: str, metric: str) -> None:
    dim = 16 if dtype != "bits" else 64
    x, q = vectors(dtype, 4000, dim, seed=3), vectors(dtype, 200, dim, seed=4)
    index = lanewise.Index(dim, metric=metric, dtype=dtype).add(x)
    _, found = index.search(q, 10, ef_search=200)
    kth = nearest(x, q, metric, 10)[1][:, -1:]
    # By distance, not by id: there are many ties.
    assert (found <= kth + 1e-5).mean() > 0.95
    wide = index.search(q, 10, ef_search=4000)[1]
    np.testing.assert_allclose(wide[:, -1:], kth, atol=1e-5, rtol=1e-5)


def test_one_query_gives_one_row() -> None:
    x = vectors("f32", 50, 8)
    index = lanewise.Index(8).add(x)
    ids, found = index.search(x[7], 3)
    assert ids.shape == found.shape == (3,)
    assert ids[0] == 7
    assert found[0] == 0
    many_ids, many = index.search(x[7:8], 3)
    assert many_ids.shape == many.shape == (1, 3)
    np.testing.assert_array_equal(many_ids[0], ids)


def test_many_queries_are_answered_as_if_alone() -> None:
    x, q = vectors("f32", 300, 12, seed=5), vectors("f32", 1000, 12, seed=6)
    for kind in ("flat", "hnsw", "ivf"):
        index = lanewise.Index(12, kind=kind).add(x)
        together = index.search(q, 5, num_threads=3)
        alone = [index.search(one, 5, num_threads=1) for one in q]
        for i in range(2):
            np.testing.assert_array_equal(together[i], np.stack([one[i] for one in alone]))


def test_one_vector_can_be_added_and_adding_chains() -> None:
    index = lanewise.Index(3).add([1, 2, 3]).add([[4, 5, 6], [7, 8, 9]])
    assert len(index) == 3
    assert index.search([4, 5, 6], 1)[0].tolist() == [1]


def test_ids_are_the_users() -> None:
    x = vectors("f32", 40, 8)
    ids = np.arange(40) * -(2**40) + 5
    index = lanewise.Index(8, kind="flat").add(x, ids)
    found, _ = index.search(x, 1)
    np.testing.assert_array_equal(found[:, 0], ids)
    assert index.info()["id_bytes"] == 40 * 8


def test_ids_from_some_point_on() -> None:
    x = vectors("f32", 6, 8)
    index = lanewise.Index(8, kind="flat").add(x[:3]).add(x[3:], [100, 101, 102])
    assert index.search(x, 1)[0].ravel().tolist() == [0, 1, 2, 100, 101, 102]
    with pytest.raises(lanewise.ArgumentError, match="ids must be given"):
        index.add(x)
    with pytest.raises(lanewise.ArgumentError, match="names 1 twice"):
        index.add(x[:1], [1])
    assert len(index) == 6


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_more_than_there_are_gives_all_and_warns(kind: str) -> None:
    x = vectors("f32", 5, 8)
    index = lanewise.Index(8, kind=kind).add(x)
    with pytest.warns(lanewise.FewerResultsWarning, match="k=9 exceeds the 5 vectors") as warned:
        ids, found = index.search(x, 9)
    assert warned[0].filename == __file__
    assert ids.shape == found.shape == (5, 5)
    assert sorted(ids[0].tolist()) == [0, 1, 2, 3, 4]
    with pytest.warns(lanewise.FewerResultsWarning):
        assert index.search(x[0], 10**12)[0].shape == (5,)


def test_empty_index_gives_no_results() -> None:
    index = lanewise.Index(4)
    with pytest.warns(lanewise.FewerResultsWarning):
        ids, found = index.search(np.zeros((3, 4)), 2)
    assert ids.shape == found.shape == (3, 0)
    with pytest.warns(lanewise.FewerResultsWarning):
        assert index.search(np.zeros(4), 2)[0].shape == (0,)


def test_all_identical_vectors_are_all_found() -> None:
    index = lanewise.Index(8, m=2).add(np.ones((500, 8)))
    ids, _ = index.search(np.ones(8), 500)
    assert sorted(ids.tolist()) == list(range(500))


@pytest.mark.parametrize("dtype", METRICS)
def test_info_tells_what_it_was_made_of(dtype: str) -> None:
    index = lanewise.Index(40, dtype=dtype, m=5, ef_construction=33, seed=7)
    assert index.info()["bytes_per_vector"] == 0
    x = vectors(dtype, 300, 40)
    info = index.add(x).info()
    metric = METRICS[dtype][0]
    wanted = {"len": 300, "dim": 40, "metric": metric, "dtype": dtype, "kind": "hnsw"}
    wanted |= {"m": 5, "ef_construction": 33, "seed": 7, "id_bytes": 0}
    assert {key: info[key] for key in wanted} == wanted
    parts = info["vector_bytes"] + info["graph_bytes"]
    assert info["bytes_per_vector"] == pytest.approx(parts / 300)
    # A row is whole cache lines; the base layer has 2 m links of 4 bytes.
    assert info["vector_bytes"] >= 300 * 64
    assert info["graph_bytes"] >= 300 * 2 * 5 * 4
    assert info["memory_bytes"] >= parts
    assert info["layers"] >= 1
    assert set(info["kernels"]) >= {"dot_f32", "l2_f32", "dot_i8", "l2_i8", "hamming_bits"}
    assert (index.dim, index.metric, index.dtype, index.kind) == (40, metric, dtype, "hnsw")
    assert (index.m, index.ef_construction, index.seed, len(index)) == (5, 33, 7, 300)
    assert repr(index) == (
        f'<lanewise.Index dim=40, metric="{metric}", dtype="{dtype}", kind="hnsw", '
        "m=5, ef_construction=33, seed=7, len=300>"
    )


@pytest.mark.parametrize("code", ["none", "i8", "i4", "bits", "pq4"])
def test_lists(code: str) -> None:
    x, q = vectors("f32", 2000, 24, seed=7), vectors("f32", 50, 24, seed=8)
    exact = lanewise.Index(24, kind="flat").add(x).search(q, 5)[0]
    index = lanewise.Index(24, kind="ivf", code=code, nlist=20).add(x)
    all_lists = index.search(q, 5, nprobe=20, oversample=80)[0]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(all_lists, exact, strict=True)]) > 0.98
    found = index.search(q, 5, nprobe=1)
    assert (found.plan["lists"], found.plan["exact"]) == (50, 0)
    one_list = found.ids
    assert (
        0.05 < np.mean([np.isin(a, b).mean() for a, b in zip(one_list, exact, strict=True)]) < 0.9
    )
    info = index.info()
    assert (index.nlist, info["nlist"], info["lists"], info["graph_bytes"]) == (20, 20, 20, 0)
    assert info["list_bytes"] > 2000 * 4
    assert info["bytes_per_vector"] == (info["vector_bytes"] + info["list_bytes"]) / 2000
    wanted = f'kind="ivf"{"" if code == "none" else f", code={code!r}"}, nlist=20, seed=0'
    assert wanted.replace("'", '"') in repr(index)


def test_progress_is_drawn_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    x = vectors("f32", 500, 8)
    lanewise.Index(8).add(x)
    assert capsys.readouterr() == ("", "")
    lanewise.Index(8).add(x, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "500/500" in err
    assert "vectors/s" in err
    assert err.endswith("\n")


def test_progress_survives_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert len(lanewise.Index(2).add([1, 2], progress=True)) == 1


def test_results_can_be_copied_and_sent() -> None:
    found = lanewise.Index(4).add(vectors("f32", 50, 4)).search(np.ones((3, 4)), 5)
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(twin) is lanewise.Found
        assert twin.plan == found.plan
        np.testing.assert_array_equal(twin.ids, found.ids)
        np.testing.assert_array_equal(twin.distances, found.distances)
