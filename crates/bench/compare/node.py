"""The program `python -m compare.node`: `lanewise serve` beside OpenSearch with its k-NN plugin.

Both run on this machine, beside the clients, and hold the same documents in indexes of the same
parameters, written by the same `_bulk` requests. The breadth of searches is the least at which
each finds recall 0.95; then they take turns, round after round, while the other does nothing.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from . import catalogue, machine, recall
from .dataset import Dataset, load
from .node_page import draw, page
from .program import count, list_of, make_folder, run, written
from .servers import Server, lanewise, opensearch

K, RECALL = 10, 0.95
PARAMETERS = {"m": 16, "ef_construction": 200}
BULK_DOCUMENTS, BULK_CLIENTS = 500, 2
EF_MAX = 1000
SPACES = {"l2": "l2", "cosine": "cosinesimil", "hamming": "hamming"}
DATA = ("fashion-mnist", "wordnet", "bits")
BITS_LEN = 100_000

Ask = Callable[[Server, Path, int, float], dict[str, float]]


@dataclass(slots=True)
class Cell:
    """A server's rounds with so many clients: queries a second, milliseconds, seconds of CPU."""

    speeds: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    server_cpu_ms: list[float] = field(default_factory=list)
    client_share: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Row:
    """A server's index of a data set, merged into one segment or as it came."""

    server: str
    data: str
    merged: bool
    seconds: float
    cpu_seconds: float
    segments: int
    ef_search: int
    recall: float
    cells: dict[int, Cell]


def main(arguments: list[str]) -> int:
    """Runs the comparison; the answer is the exit status."""
    return run("compare.node", lambda: _compare(_options(arguments), arguments))


def _compare(options: argparse.Namespace, arguments: list[str]) -> None:
    make_folder(options.out)
    facts = machine.describe("compare.node", arguments)
    rows: list[Row] = []
    abouts: dict[str, str] = {}
    for name in options.data:
        folder = catalogue.prepared(name, options.cache, options.quick)
        data = load(folder, BITS_LEN if name == "bits" else None)
        abouts[name] = f"{len(data.base):,} x {data.dim}, {SPACES[data.metric]}; {data.about}"
        for row in _data_set(name, data, options, facts):
            rows.append(row)
            (options.out / "node.md").write_text(page(rows, facts, abouts, options.rounds))
    result = page(rows, facts, abouts, options.rounds)
    print(result)
    draw(options.out / "node.png", rows)
    if options.page:
        written(options.page).write_text(result)
        draw(options.page.with_suffix(".png"), rows)


def _data_set(
    name: str, data: Dataset, options: argparse.Namespace, facts: dict[str, str]
) -> Iterator[Row]:
    """Rows of one data set: servers started for it, filled, and asked by turns."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.cache)))
        scratch.chmod(0o755)  # OpenSearch refuses to be root, and reads it as somebody else
        start = stack.enter_context
        servers = [start(lanewise(options.lanewise, scratch / "lanewise"))]
        if name == "bits":
            below = options.lower
            servers.append(start(lanewise(options.lanewise, scratch / below, below)))
        servers.append(start(opensearch(scratch / "opensearch", options.cache)))
        facts |= {server.name: server.version for server in servers}
        bulks = scratch / "bulks"
        _write(bulks, _bulks(data))
        ask = partial(_load, options.load)
        built = {server.name: _fill(server, data, bulks, ask) for server in servers}
        stages = (False, True) if name == "bits" else (True,)
        for merged in stages:
            if merged:
                for server in servers:
                    took = _timed(server, lambda server=server: _merge(server))
                    built[server.name] = tuple(
                        a + b for a, b in zip(built[server.name], took, strict=True)
                    )
            yield from _stage(name, data, servers, built, merged, scratch, ask, options)


def _stage(
    name: str,
    data: Dataset,
    servers: list[Server],
    built: dict[str, tuple[float, float]],
    merged: bool,
    scratch: Path,
    ask: Ask,
    options: argparse.Namespace,
) -> list[Row]:
    truth = recall.cached_nearest(data, recall.NEIGHBOURS, options.cache)
    threshold = recall.distances(data, truth[:, :K])[:, -1]
    rows, queries = [], {}
    for server in servers:

        def found(ef: int, server: Server = server) -> float:
            _write(scratch / "tuned", _queries(data, ef))
            ids = _answers(options.load, server, scratch)
            return recall.recall(data, threshold, ids)

        ef, reached = least_ef(found)
        queries[server.name] = scratch / f"queries of {server.name}"
        _write(queries[server.name], _queries(data, ef))
        cells = {clients: Cell() for clients in options.clients}
        segments = server.ask("GET", "/_cat/segments/v?format=json&h=docs.count", filled)
        row = Row(server.name, name, merged, *built[server.name], segments, ef, reached, cells)
        rows.append(row)
        _say(f"{name}: {server.name} finds {reached:.4f} at ef_search {ef}, {segments} segments")
        ask(server, queries[server.name], max(options.clients), options.warm_up)
    pairs = list(zip(servers, rows, strict=True))
    for number in range(options.rounds):
        first = number % len(servers)
        for server, row in pairs[first:] + pairs[:first]:
            for clients, cell in row.cells.items():
                cpu = server.cpu_seconds()
                told = ask(server, queries[server.name], clients, options.seconds)
                cell.speeds.append(told["requests"] / told["seconds"])
                cell.p50_ms.append(told["p50_us"] / 1000)
                cell.p99_ms.append(told["p99_us"] / 1000)
                cell.client_share.append(told["cpu_seconds"] / told["seconds"])
                cell.server_cpu_ms.append((server.cpu_seconds() - cpu) / told["requests"] * 1000)
        _say(f"{name}: round {number + 1}/{options.rounds}")
    return rows


def filled(segments: list[dict[str, str]]) -> int:
    """How many have documents."""
    return sum(each["docs.count"] != "0" for each in segments)


def least_ef(found: Callable[[int], float]) -> tuple[int, float]:
    """The least ef_search at which `found` gives RECALL, and what it gives; EF_MAX if none does."""
    if (reached := found(K)) >= RECALL:
        return K, reached
    low, high = K + 1, EF_MAX
    while low < high:
        middle = (low + high) // 2
        if found(middle) >= RECALL:
            high = middle
        else:
            low = middle + 1
    return high, found(high)


def _fill(server: Server, data: Dataset, bulks: Path, ask: Ask) -> tuple[float, float]:
    """Seconds, and seconds of CPU, until all is written and searchable and the server rests."""
    field = {
        "type": "knn_vector",
        "dimension": data.dim,
        "method": {
            "name": "hnsw",
            "engine": "lucene",
            "space_type": SPACES[data.metric],
            "parameters": PARAMETERS,
        },
    }
    if data.metric == "hamming":
        field["data_type"] = "binary"
    settings = {"knn": True, "number_of_shards": 1, "number_of_replicas": 0}
    settings["knn.derived_source.enabled"] = False
    body = {"settings": {"index": settings}, "mappings": {"properties": {"v": field}}}
    server.ask("PUT", "/v", body=body)

    def write() -> None:
        ask(server, bulks, BULK_CLIENTS, 0)
        server.ask("POST", "/v/_refresh")

    took = _timed(server, write)
    written_len = server.ask("GET", "/v/_count", lambda told: told["count"])
    assert written_len == len(data.base), f"{server.name} holds {written_len} documents"
    # OpenSearch refuses `method_parameters` at times where its very first searches are two at once.
    server.ask("POST", "/v/_search", body=json.loads(next(_queries(data, K))))
    _say(f"{server.name}: filled in {took[0]:.1f} s")
    return took


def _merge(server: Server) -> None:
    server.ask("POST", "/v/_forcemerge?max_num_segments=1")
    server.ask("POST", "/v/_refresh")


def _timed(server: Server, work: Callable[[], None]) -> tuple[float, float]:
    """Seconds until `work` is done and the server rests, and the seconds of CPU that it took."""
    start, cpu = time.perf_counter(), server.cpu_seconds()
    work()
    seconds = time.perf_counter() - start
    seconds += server.rests()
    return seconds, server.cpu_seconds() - cpu


def _load(
    program: Path, server: Server, bodies: Path, clients: int, seconds: float
) -> dict[str, float]:
    """Lets the load generator send bodies: for some seconds, or each once."""
    path = "/v/_search" if seconds else "/v/_bulk"
    command = [program, "--address", server.address, "--path", path, "--bodies", bodies]
    command += ["--clients", str(clients), *(["--seconds", str(seconds)] if seconds else [])]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return json.loads(done.stdout) | {"cpu_seconds": cpu}


def _answers(program: Path, server: Server, scratch: Path) -> np.ndarray:
    """Ids (queries, K) of the answers to the tuned queries, -1 where there are fewer."""
    command = [program, "--address", server.address, "--path", "/v/_search", "--clients", "2"]
    command += ["--bodies", scratch / "tuned", "--answers", scratch / "answers"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    lines = (scratch / "answers").read_bytes().splitlines()
    ids = np.full((len(lines), K), -1)
    for row, line in zip(ids, lines, strict=True):
        hits = [int(hit["_id"]) for hit in json.loads(line)["hits"]["hits"]]
        row[: len(hits)] = hits
    return ids


def _values(rows: np.ndarray) -> list[list[float]]:
    """As they are sent: bytes are signed, floats have seven digits behind the point."""
    if rows.dtype == np.uint8 and rows.shape[1] * 8 == 768:
        return rows.view(np.int8).tolist()
    return np.round(rows.astype(np.float64), 7).tolist()


def _bulks(data: Dataset) -> Iterator[str]:
    for start in range(0, len(data.base), BULK_DOCUMENTS):
        vectors = _values(data.base[start : start + BULK_DOCUMENTS])
        lines = (
            f'{{"index":{{"_id":"{start + number}"}}}}\n{{"v":{json.dumps(vector)}}}\n'
            for number, vector in enumerate(vectors)
        )
        yield "".join(lines)


def _queries(data: Dataset, ef: int) -> Iterator[str]:
    for vector in _values(data.queries):
        asked = {"vector": vector, "k": K, "method_parameters": {"ef_search": ef}}
        yield json.dumps({"size": K, "_source": False, "query": {"knn": {"v": asked}}})


def _write(path: Path, bodies: Iterator[str]) -> None:
    """As the load generator reads them: each behind its length."""
    with path.open("wb") as file:
        for body in bodies:
            raw = body.encode()
            file.write(len(raw).to_bytes(4, "little") + raw)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("compare.node", description="A node beside OpenSearch.")
    add = parser.add_argument
    add("--lanewise", type=Path, required=True, metavar="FILE", help="the program")
    add("--load", type=Path, required=True, metavar="FILE", help="the load generator")
    add("--data", type=list_of(str), default=list(DATA), metavar="A,B", help=f"of {DATA}")
    add("--clients", type=list_of(count), default=[1, 8, 64], metavar="N,M", help="(1,8,64)")
    add("--rounds", type=count, default=5, metavar="N", help="(%(default)s)")
    add("--seconds", type=float, default=10.0, metavar="S", help="of a turn (%(default)s)")
    add("--warm-up", type=float, default=30.0, metavar="S", help="of each server (%(default)s)")
    add("--lower", default="avx2", metavar="LEVEL", help="LANEWISE_ISA beside it (%(default)s)")
    add("--quick", action="store_true", help="10,000 vectors, one short round")
    add("--cache", type=Path, default=Path(".cache"), metavar="DIR", help="data, servers")
    add("--out", type=Path, default=Path("bench-out/node"), metavar="DIR", help="(%(default)s)")
    add("--page", type=Path, metavar="FILE", help="where the page is kept, too")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds, options.warm_up = 1, 1.0, 2.0
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
