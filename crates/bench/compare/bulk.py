"""The program `python -m compare.bulk`: filling a table, against libraries that only build.

One process after the other takes in the same vectors, float32 by L2: a table by load()
(documents, log, files and all, durable at the end), a table by put_many() under document
003's settings before and after tuning, lanewise.Index, hnswlib and faiss. Each says how
long it took, the CPU it used, the most memory it held beyond the vectors, and the recall
of what it built.
"""

import argparse
import gc
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from . import catalogue, machine, recall
from .dataset import load
from .errors import BenchError
from .program import count, make_folder, run, written

M, EF_CONSTRUCTION, EF_SEARCH, K = 16, 200, 64, 10
MIB = 1 << 20
SECOND, HOUR = 1000, 3_600_000

# Document 003's, under the names that a table's settings have: a segment for each refresh.
UNTUNED = {
    "durability": "request",
    "flush_after_ms": SECOND,
    "flush_threshold_bytes": 518 * MIB,
    "merge": {"floor_segment": MIB, "segments_per_tier": 10, "max_merge_at_once": 10},
}
TUNED = {
    "durability": "async",
    "sync_interval_ms": 120 * SECOND,
    "flush_after_ms": HOUR,
    "flush_threshold_bytes": 1024 * MIB,
    "merge": {"floor_segment": 10 * MIB, "segments_per_tier": 15, "max_merge_at_once": 15},
}

Search = Callable[[np.ndarray], np.ndarray]
"""Of one query."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What a way made."""

    search: Search
    segments: int = 1


Fill = Callable[[np.ndarray, int, Path], Filled]


def _table(rows: np.ndarray, threads: int, folder: Path, code: str | None = None):
    import lanewise

    parameters: dict[str, Any] = {} if code is None else {"code": code}
    field = lanewise.vector(
        rows.shape[1], metric="l2", m=M, ef_construction=EF_CONSTRUCTION, **parameters
    )
    schema = {"n": "integer", "color": "keyword", "v": field}
    table = lanewise.Table.create(folder / "table", schema, num_threads=threads)
    colors = ("red", "green", "blue")
    documents = [{"n": i, "color": colors[i % 3]} for i in range(len(rows))]
    ids = [str(i) for i in range(len(rows))]
    return table, documents, ids


def _filled(table) -> Filled:
    def search(query: np.ndarray) -> np.ndarray:
        hits = table.search(vector=query, k=K, ef_search=EF_SEARCH, documents=False)
        return np.array([int(hit.id) for hit in hits])

    return Filled(search, table.stats()["segments"])


def _load(code: str | None = None) -> Fill:
    def fill(rows: np.ndarray, threads: int, folder: Path) -> Filled:
        table, documents, ids = _table(rows, threads, folder, code)
        table.load(documents, ids=ids, vectors={"v": rows})
        return _filled(table)

    return fill


def _put(settings: dict[str, Any]) -> Fill:
    def fill(rows: np.ndarray, threads: int, folder: Path) -> Filled:
        table, documents, ids = _table(rows, threads, folder)
        table.change_settings(**settings)
        table.put_many(documents, ids=ids, vectors={"v": rows})
        table.flush()
        while table.merge() is not None:
            pass
        return _filled(table)

    return fill


def _index(rows: np.ndarray, threads: int, folder: Path) -> Filled:
    import lanewise

    index = lanewise.Index(rows.shape[1], metric="l2", m=M, ef_construction=EF_CONSTRUCTION)
    index.add(rows, num_threads=threads)
    return Filled(lambda query: index.search(query, K, ef_search=EF_SEARCH).ids)


def _hnswlib(rows: np.ndarray, threads: int, folder: Path) -> Filled:
    import hnswlib

    index = hnswlib.Index("l2", rows.shape[1])
    index.init_index(len(rows), M=M, ef_construction=EF_CONSTRUCTION)
    index.add_items(rows, num_threads=threads)
    index.set_ef(EF_SEARCH)
    return Filled(lambda query: index.knn_query(query, K, num_threads=1)[0][0].astype(np.int64))


def _faiss(rows: np.ndarray, threads: int, folder: Path) -> Filled:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(rows.shape[1], M)
    index.hnsw.efConstruction = EF_CONSTRUCTION
    index.add(rows)
    index.hnsw.efSearch = EF_SEARCH
    faiss.omp_set_num_threads(1)
    return Filled(lambda query: index.search(query[None], K)[1][0])


WAYS: dict[str, Fill] = {
    "table, load": _load(),
    "table, load, code i8": _load("i8"),
    "table, put_many tuned": _put(TUNED),
    "table, put_many untuned": _put(UNTUNED),
    "lanewise.Index": _index,
    "hnswlib": _hnswlib,
    "faiss": _faiss,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What a way took: seconds, seconds of CPU, bytes beyond the vectors; and what it left."""

    way: str
    seconds: float
    cpu: float
    peak: int
    segments: int
    recall: float
    query_us: float


def main(arguments: list[str]) -> int:
    """Runs the comparison; the answer is the exit status."""
    return run("compare.bulk", lambda: _compare(_options(arguments), arguments))


def _compare(options: argparse.Namespace, arguments: list[str]) -> None:
    make_folder(options.out)
    folder = catalogue.prepared("sift-like", options.cache, quick=False)
    data = load(folder, options.vectors)
    truth = recall.cached_nearest(data, recall.NEIGHBOURS, options.cache)
    threshold = recall.distances(data, truth[:, :K])[:, -1]
    facts = machine.describe("compare.bulk", arguments)
    facts["data"] = f"{len(data.base):,} x {data.dim} as float32; {data.about}"
    facts["threads"] = str(options.threads)
    rows: list[Row] = []
    for way in options.ways:
        print(f"{way} …", file=sys.stderr, flush=True)
        seconds, cpu, peak, segments, ids, query_us = _measured(way, folder, options)
        found = recall.recall(data, threshold, ids)
        rows.append(Row(way, seconds, cpu, peak, segments, found, query_us))
        print(f"{way}: {seconds:.1f} s, {cpu:.1f} s of CPU", file=sys.stderr, flush=True)
        result = page(rows, facts)
        (options.out / "bulk.md").write_text(result)
    print(result)
    if options.page:
        written(options.page).write_text(result)


def _measured(way: str, folder: Path, options: argparse.Namespace) -> tuple:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, way, folder, options), daemon=True)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError as error:
        raise BenchError(f"{way}: its process ended; its message is above") from error
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, way: str, folder: Path, options: argparse.Namespace) -> None:
    data = load(folder, options.vectors)
    rows = np.ascontiguousarray(data.base, np.float32)
    queries = np.ascontiguousarray(data.queries, np.float32)
    gc.collect()
    with tempfile.TemporaryDirectory(dir=options.cache) as scratch:
        before = _status("RssAnon")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        shared = _status("VmRSS") - before
        start, cpu = time.perf_counter(), time.process_time()
        filled = WAYS[way](rows, options.threads, Path(scratch))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        # Pages of files count where they are mapped; they are the system's to drop.
        peak = _status("VmHWM") - before - shared
        pipe.send((seconds, cpu, peak, filled.segments, *_found(filled.search, queries)))


def _found(search: Search, queries: np.ndarray) -> tuple[np.ndarray, float]:
    """What each query finds, -1 where nothing; and the median of their times, microseconds."""
    found, times = np.full((len(queries), K), -1), []
    for row, query in zip(found, queries, strict=True):
        start = time.perf_counter()
        ids = search(query)
        times.append(time.perf_counter() - start)
        row[: len(ids)] = ids
    return found, float(np.median(times)) * 1e6


def _status(field: str) -> int:
    """A size of this process, bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(found[0]) * 1024 if found else 0


def page(rows: list[Row], facts: dict[str, str]) -> str:
    """The page: a line for each way, and the ratios that are asked about."""
    lines = [
        "# Filling a table, and building alone",
        "",
        "`make bench-bulk` measures this and writes this page, one process after the other: HNSW, "
        f"m = {M}, ef_construction = {EF_CONSTRUCTION}; recall@{K} at ef_search = {EF_SEARCH}, one "
        "query at a time from Python. Memory is the most that was held beyond the vectors that "
        "were brought, mapped files included.",
        "",
        *(f"- {name}: {fact}" for name, fact in facts.items()),
        "",
        "| | seconds | seconds of CPU | peak MiB | segments | recall | µs a query |",
        "| --- | --: | --: | --: | --: | --: | --: |",
        *(
            f"| {row.way} | {row.seconds:.1f} | {row.cpu:.1f} | {row.peak / MIB:,.0f} "
            f"| {row.segments} | {row.recall:.4f} | {row.query_us:.0f} |"
            for row in rows
        ),
        "",
    ]
    seconds = {row.way: row.seconds for row in rows}
    for one, other, says in (
        ("hnswlib", "table, load", "load is {:.2f} times as fast as hnswlib builds"),
        ("faiss", "table, load", "load is {:.2f} times as fast as faiss builds"),
        ("hnswlib", "table, load, code i8", "with code i8, {:.2f} times as fast as hnswlib"),
        (
            "table, put_many untuned",
            "table, put_many tuned",
            "document 003's tuning: {:.2f} times as fast (5.0 there, with CPU and Spark; here "
            "writes are seen without a segment for each refresh, and graphs of small segments "
            "cost less)",
        ),
        (
            "table, put_many untuned",
            "table, load",
            "load is {:.2f} times as fast as untuned writes",
        ),
    ):
        if one in seconds and other in seconds:
            lines.append(f"- {says.format(seconds[one] / seconds[other])}")
    return "\n".join(lines) + "\n"


def _way(text: str) -> str:
    if text not in WAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {'; '.join(WAYS)}")
    return text


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("compare.bulk", description="Filling a table, by turns.")
    add = parser.add_argument
    names = "; ".join(WAYS)
    add("--ways", type=_way, nargs="+", default=list(WAYS), metavar="WAY", help=names)
    add("--threads", type=count, default=machine.threads_available(), metavar="N", help="(all)")
    add("--vectors", type=count, default=1_000_000, metavar="N", help="up to a million (all)")
    add("--cache", type=Path, default=Path(".cache"), metavar="DIR", help="data, exact answers")
    add("--out", type=Path, default=Path("bench-out/bulk"), metavar="DIR", help="(%(default)s)")
    add("--page", type=Path, metavar="FILE", help="where the page is kept, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
