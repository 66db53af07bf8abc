"""Save and open: round trips, damage, and writes that fail."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import lanewise
import numpy as np
import pytest
from conftest import SPACES, vectors


def same(a: lanewise.Index, b: lanewise.Index, q: object) -> bool:
    k = min(10, len(a))
    pairs = zip(a.search(q, k), b.search(q, k), strict=True)  # type: ignore[arg-type]
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("own_ids", [False, True])
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
@pytest.mark.parametrize(("dtype", "metric"), SPACES)
def test_round_trip(tmp_path: Path, dtype: str, metric: str, kind: str, own_ids: bool) -> None:
    x = vectors(dtype, 400, 20)
    index = lanewise.Index(20, metric, dtype, kind, m=6, ef_construction=40, seed=3, nlist=8)
    index.add(x, np.arange(400) * 7 if own_ids else None)
    index.save(tmp_path / "a")
    opened = lanewise.Index.open(str(tmp_path / "a"))
    assert repr(opened) == repr(index)
    assert same(opened, index, x)
    of_memory = {"memory_bytes"}
    a, b = opened.info(), index.info()
    assert {k: a[k] for k in a.keys() - of_memory} == {k: b[k] for k in b.keys() - of_memory}
    # What was opened takes more vectors and saves as what was never closed.
    more = vectors(dtype, 50, 20, seed=9)
    ids = np.arange(50) - 50 if own_ids else None
    opened.add(more, ids).save(tmp_path / "b")
    index.add(more, ids).save(tmp_path / "c")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b", "c"}


def test_empty_index_round_trip(tmp_path: Path) -> None:
    lanewise.Index(5).save(tmp_path / "a")
    opened = lanewise.Index.open(tmp_path / "a")
    assert len(opened) == 0
    assert len(opened.add(vectors("f32", 9, 5))) == 9


def test_saving_over_the_file_one_reads_from(tmp_path: Path) -> None:
    x = vectors("f32", 200, 8)
    lanewise.Index(8).add(x).save(tmp_path / "a")
    opened = lanewise.Index.open(tmp_path / "a")
    lanewise.Index(8).add(x[::-1].copy()).save(tmp_path / "a")
    assert opened.search(x[0], 1)[0][0] == 0
    opened.save(tmp_path / "a")
    assert lanewise.Index.open(tmp_path / "a").search(x[0], 1)[0][0] == 0


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_bytes_do_not_depend_on_threads(tmp_path: Path, kind: str) -> None:
    x = vectors("f32", 3000, 16)
    for threads in (1, 2, 5):
        index = lanewise.Index(16, kind=kind).add(x[:2000], num_threads=threads)
        index.add(x[2000:], num_threads=threads).save(tmp_path / str(threads))
    assert len({(tmp_path / str(threads)).read_bytes() for threads in (1, 2, 5)}) == 1


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "index"
    x = vectors("i8", 300, 24)
    lanewise.Index(24, "cosine", "i8", m=4).add(x, range(1000, 1300)).save(path)
    return path


def refused_or_same(path: Path, good: lanewise.Index) -> bool:
    """Whether a damaged file was refused; if it was not, it must answer as the good one."""
    try:
        opened = lanewise.Index.open(path)
    except lanewise.FormatError as error:
        return str(path) in str(error)
    assert same(opened, good, vectors("i8", 20, 24, seed=8))
    return False


def test_flipped_bits_are_found(saved: Path, tmp_path: Path) -> None:
    seed = int(os.environ.get("LANEWISE_TEST_SEED", random.SystemRandom().getrandbits(32)))
    print(f"LANEWISE_TEST_SEED={seed}")
    rng = random.Random(seed)
    good, image = lanewise.Index.open(saved), saved.read_bytes()
    # Each byte of the header, where single fields are, and many of what follows.
    places = [*range(512), *(rng.randrange(len(image)) for _ in range(1500))]
    refused = 0
    for place in places:
        damaged = bytearray(image)
        damaged[place] ^= 1 << rng.randrange(8)
        path = tmp_path / "damaged"
        path.write_bytes(damaged)
        refused += refused_or_same(path, good)
    assert refused == len(places)


def test_truncated_and_grown_files_are_refused(saved: Path, tmp_path: Path) -> None:
    good, image = lanewise.Index.open(saved), saved.read_bytes()
    lengths = {*range(0, 1024, 13), *range(1024, len(image), 997), 511, 512, 513, len(image) - 1}
    for length in lengths:
        path = tmp_path / "cut"
        path.write_bytes(image[:length])
        assert refused_or_same(path, good), f"cut to {length} bytes"
    for more in (b"\0", b"\0" * 64, image):
        path = tmp_path / "grown"
        path.write_bytes(image + more)
        assert refused_or_same(path, good)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"LANEWISE", b"\x93NUMPY" + bytes(600), os.urandom(4096)):
        path = tmp_path / "other"
        path.write_bytes(content)
        with pytest.raises(lanewise.FormatError, match="other"):
            lanewise.Index.open(path)


@pytest.mark.parametrize("call", ["open", "save"])
def test_system_errors_are_pythons(tmp_path: Path, call: str) -> None:
    missing = tmp_path / "missing" / "index"
    with pytest.raises(FileNotFoundError, match="No such file") as raised:
        lanewise.Index.open(missing) if call == "open" else lanewise.Index(2).save(missing)
    assert raised.value.filename == str(missing)
    with pytest.raises(OSError, match=str(tmp_path)):
        lanewise.Index.open(tmp_path) if call == "open" else lanewise.Index(2).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_leaves_the_old_file(tmp_path: Path, python: Callable[..., str]) -> None:
    path = tmp_path / "index"
    lanewise.Index(4).add([1, 2, 3, 4]).save(path)
    before = path.read_bytes()
    said = python(
        """
import resource, sys, lanewise, numpy as np
index = lanewise.Index(64).add(np.ones((1000, 64)))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    index.save(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
    print(len(index), index.search(np.ones(64), 1)[1][0])
""",
        path,
    )
    assert said.splitlines() == [f"OSError 27 {path}", "1000 0.0"]
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["index"]
