"""The program `python -m compare.levels`: one index, one machine, instruction sets by turns.

Document 001's experiment without its network: binary vectors of 768 bits by HNSW with
m = 16, ef_construction = 256 and ef_search = 256, asked in several segments and in one, with
each instruction set forced by LANEWISE_ISA. A process for each; they take turns in every
round, so that ratios are formed between neighbours in time.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import numpy as np

from . import catalogue, machine, recall
from .dataset import load
from .errors import BenchError
from .program import count, list_of, make_folder, run, written

LEVELS = ("avx2", "avx512", "avx512vpopcntdq")
PARAMETERS = {"m": 16, "ef_construction": 256}
EF_SEARCH = 256
K = 10


def main(arguments: list[str]) -> int:
    """Runs the comparison; the answer is the exit status."""
    return run("compare.levels", lambda: _compare(_options(arguments), arguments))


def _compare(options: argparse.Namespace, arguments: list[str]) -> None:
    make_folder(options.out)
    folder = catalogue.prepared("bits", options.cache, quick=False)
    data = load(folder, options.vectors)
    truth = recall.cached_nearest(data, recall.NEIGHBOURS, options.cache)
    threshold = recall.distances(data, truth[:, :K])[:, -1]
    facts = machine.describe("compare.levels", arguments)
    facts["data"] = f"{len(data.base):,} vectors of {data.dim} bits; {data.about}"
    levels: list[_Level] = []
    try:
        for level in options.levels:
            levels.append(_Level(level, folder, options))
        for number in range(options.rounds):
            first = number % len(levels)
            for level in levels[first:] + levels[:first]:
                for merged in (False, True):
                    level.search(merged, partial(recall.recall, data, threshold))
            print(f"round {number + 1}/{options.rounds}", file=sys.stderr, flush=True)
    finally:
        for level in levels:
            level.process.terminate()
    result = page([level.row for level in levels], facts, options.segments, len(data.base))
    written(options.out / "levels.md").write_text(result)
    print(result)


@dataclass(slots=True)
class Row:
    """What a level measured, by whether the segments are merged: queries a second of each
    round, recall, seconds of CPU of the builds."""

    level: str
    speeds: dict[bool, list[float]]
    recalls: dict[bool, float]
    build_seconds: dict[bool, float]


class _Level:
    """A level's process, and its row."""

    def __init__(self, level: str, folder: Path, options: argparse.Namespace) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        os.environ["LANEWISE_ISA"] = level  # the child inherits it
        self.process = context.Process(
            target=_serve, args=(theirs, folder, options), name=level, daemon=True
        )
        self.process.start()
        theirs.close()
        seconds = {merged: self._ask("build", merged) for merged in (False, True)}
        self.row = Row(level, {False: [], True: []}, {}, seconds)
        both = ", ".join(f"{each:.1f} s" for each in seconds.values())
        print(f"{level}: built in {both} of CPU", file=sys.stderr, flush=True)

    def search(self, merged: bool, judge: Callable[[np.ndarray], float]) -> None:
        """One round."""
        ids, seconds = self._ask("search", merged)
        self.row.recalls[merged] = judge(ids)
        self.row.speeds[merged].append(len(ids) / seconds)

    def _ask(self, verb: str, merged: bool):
        self._pipe.send((verb, merged))
        try:
            return self._pipe.recv()
        except EOFError as error:
            raise BenchError(
                f"{self.process.name}: its process ended; its message is above"
            ) from error


def _serve(pipe: Connection, folder: Path, options: argparse.Namespace) -> None:
    import lanewise

    data = load(folder, options.vectors)
    segments, threads = options.segments, options.threads
    indexes: dict[bool, list] = {}
    while True:
        verb, merged = pipe.recv()
        if verb == "build":
            start = time.process_time()
            parts = np.array_split(np.arange(len(data.base)), 1 if merged else segments)
            indexes[merged] = [
                lanewise.Index(data.dim, dtype="bits", **PARAMETERS).add(
                    data.base[part[0] : part[-1] + 1], ids=part, num_threads=threads
                )
                for part in parts
            ]
            pipe.send(time.process_time() - start)
        else:
            start = time.process_time()
            found = [
                index.search(data.queries, K, ef_search=EF_SEARCH, num_threads=threads)
                for index in indexes[merged]
            ]
            ids = np.concatenate([each.ids for each in found], axis=1)
            distances = np.concatenate([each.distances for each in found], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :K]
            pipe.send((np.take_along_axis(ids, order, axis=1), time.process_time() - start))


def page(rows: list[Row], facts: dict[str, str], segments: int, vectors: int) -> str:
    """The page: a line for each level, and what each gains over the one before."""
    lines = [
        "# The higher instruction set against the lower",
        "",
        "`make bench-levels` measures this and writes this page. HNSW over bits by Hamming: "
        f"m = {PARAMETERS['m']}, ef_construction = {PARAMETERS['ef_construction']}, "
        f"ef_search = {EF_SEARCH}, k = {K}; queries a second of CPU, medians over rounds in "
        "which the levels take turns.",
        "",
        *(f"- {name}: {fact}" for name, fact in facts.items()),
        "",
        f"| level | {segments} segments, queries/s | recall | 1 segment, queries/s | recall "
        f"| built in {segments}, vectors/s | in 1, vectors/s |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        cells = [f"{median(row.speeds[False]):,.0f}", f"{row.recalls[False]:.4f}"]
        cells += [f"{median(row.speeds[True]):,.0f}", f"{row.recalls[True]:.4f}"]
        cells += [f"{vectors / row.build_seconds[merged]:,.0f}" for merged in (False, True)]
        lines.append(f"| {row.level} | {' | '.join(cells)} |")
    for low, high in [*pairwise(rows), *([(rows[0], rows[-1])] if len(rows) > 2 else [])]:
        gains = []
        for merged in (False, True):
            pairs = zip(low.speeds[merged], high.speeds[merged], strict=True)
            gains += [f"{100 * (median(h / lo for lo, h in pairs) - 1):+.0f} %", ""]
        gains += [
            f"{100 * (low.build_seconds[merged] / high.build_seconds[merged] - 1):+.0f} %"
            for merged in (False, True)
        ]
        lines.append(f"| {high.level} over {low.level} | {' | '.join(gains)} |")
    return "\n".join(lines) + "\n"


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "compare.levels", description="One index with each instruction set, by turns."
    )
    add = parser.add_argument
    add("--levels", type=list_of(str), default=list(LEVELS), metavar="A,B", help="ascending")
    add("--segments", type=count, default=8, metavar="N", help="beside one (%(default)s)")
    add("--rounds", type=count, default=7, metavar="N", help="(%(default)s)")
    add("--threads", type=count, default=1, metavar="N", help="of each call (%(default)s)")
    add("--vectors", type=count, default=100_000, metavar="N", help="up to a million (%(default)s)")
    add("--cache", type=Path, default=Path(".cache"), metavar="DIR", help="data, exact answers")
    add("--out", type=Path, default=Path("bench-out/levels"), metavar="DIR", help="(%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
