"""The program `python -m compare`. The page goes to a file, progress to stderr."""

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from . import catalogue, driver, machine, plot, recall, record, report
from .adapters import BITS, VECTORS, libraries
from .catalogue import DATASETS, QUICK_BASE_LEN
from .dataset import load
from .errors import BenchError
from .program import count, list_of, make_folder, run, written

ALL = list(VECTORS | BITS)
GIVEN = "given"
MEMORY_SHARE = 0.8
"""Of the memory that is free when a data set begins."""


def main(arguments: list[str]) -> int:
    """Runs the comparison; the answer is the exit status."""
    return run("compare", lambda: _compare(_options(arguments), arguments))


def _compare(options: argparse.Namespace, arguments: list[str]) -> None:
    make_folder(options.out)
    page = options.page or options.out / "compare.md"
    records = []
    for name in [GIVEN] if options.data else options.datasets:
        path = options.out / f"{name}.json"
        if options.resume and path.is_file():
            driver.say(f"{name}: taken from {path}")
            records.append(record.load(path))
        else:
            records.append(_measured(name, options, arguments))
            records[-1].save(written(path))
        # After each data set: who looks in before the end finds what there is.
        _write_page(page, records)
    if not any(each.done for each in records):
        raise BenchError(f"no library could be run; {page} says why")


def _measured(name: str, options: argparse.Namespace, arguments: list[str]) -> record.Record:
    """One data set, measured."""
    facts = machine.describe("compare", arguments)
    driver.say(f"{name}: preparing the data")
    if name == GIVEN:
        folder = catalogue.given(
            options.data, options.queries, options.metric, options.cache, options.quick
        )
    else:
        folder = catalogue.prepared(name, options.cache, options.quick)
    data = load(folder)
    known = libraries(data.metric)
    wanted = {each: known[each] for each in options.libraries if each in known}
    free = options.memory * 2**30 if options.memory else MEMORY_SHARE * machine.memory_available()
    plan = driver.Plan(
        threads=sorted({1, options.threads}),
        rounds=options.rounds or (2 if options.quick else 5),
        builds=options.builds,
        seconds=0.02 if options.quick else 0.2,
        memory_bytes=int(free),
        build_seconds_max=options.build_limit,
    )
    if len(data.base) < plan.k:
        raise BenchError(f"{name} holds {len(data.base)} vectors, at least {plan.k} are needed")
    driver.say(f"{name}: exact neighbours")
    truth = recall.cached_nearest(data, recall.NEIGHBOURS, options.cache)
    logs = options.out / f"{name}-logs"
    make_folder(logs)
    start = time.monotonic()
    results = driver.run(plan, wanted, folder, truth, data, logs)
    facts["took"] = f"{(time.monotonic() - start) / 60:.0f} minutes, without preparing the data"
    about = {
        "about": data.about,
        "base_len": len(data.base),
        "dim": data.dim,
        "dtype": "bits" if data.metric == "hamming" else str(data.base.dtype),
        "queries_len": len(data.queries),
        "metric": data.metric,
        "lid": recall.local_dimension(data, truth),
    }
    return record.Record(
        name, about, facts, asdict(plan), results.loads, results.waves, results.rows
    )


def _write_page(page: Path, records: list[record.Record]) -> None:
    """The page of all records, and the picture of the last; pictures lie beside the page."""
    pictures = {each.name: f"{page.stem}-{each.name}.png" for each in records if each.done}
    if records[-1].done:
        plot.draw(page.parent / pictures[records[-1].name], records[-1])
    written(page).write_text(report.page(records, pictures))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "compare", description="Lanewise beside other vector indexes, in one run."
    )
    add = parser.add_argument
    add(
        "--datasets",
        type=list_of(_of(DATASETS)),
        default=list(DATASETS),
        metavar="A,B",
        help=f"of {', '.join(DATASETS)} (all)",
    )
    add(
        "--data",
        type=Path,
        metavar="PATH",
        help="your own instead: folder of idx files, .npz (train, test), .npy, .fvecs, .bvecs",
    )
    add("--queries", type=Path, metavar="PATH", help="queries of --data, where it holds none")
    add("--metric", choices=("l2", "cosine"), default="l2", help="of --data (%(default)s)")
    add(
        "--libraries",
        type=list_of(_of(ALL)),
        default=ALL,
        metavar="A,B",
        help=f"of {', '.join(ALL)} (all that take the data's metric)",
    )
    add("--rounds", type=count, metavar="N", help="interleaved rounds (5; quick: 2)")
    add("--builds", type=count, default=1, metavar="N", help="builds of each index (1)")
    add(
        "--threads",
        type=count,
        default=machine.threads_available(),
        metavar="N",
        help="measured beside 1 (all)",
    )
    add(
        "--memory",
        type=count,
        metavar="GIB",
        help="what all indexes together may hold (0.8 of what is free); those that do not "
        "fit beside each other are measured in waves",
    )
    add(
        "--build-limit",
        type=count,
        default=2_400,
        metavar="SECONDS",
        help="a library that builds for longer is ended (%(default)s)",
    )
    add(
        "--resume", action="store_true", help="keep the data sets that --out already has records of"
    )
    add("--cache", type=Path, default=Path(".cache"), metavar="DIR", help="data and exact answers")
    add(
        "--out",
        type=Path,
        default=Path("bench-out/compare"),
        metavar="DIR",
        help="where the records go (%(default)s)",
    )
    add("--page", type=Path, metavar="PATH", help="the page, pictures beside it (OUT/compare.md)")
    add(
        "--quick",
        action="store_true",
        help=f"{QUICK_BASE_LEN:,} vectors of each, fewer and shorter readings",
    )
    return parser.parse_args(arguments)


def _of(known: dict | list):
    """An argument that is one of these names."""

    def name(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"unknown {text!r}; known: {', '.join(known)}")
        return text

    return name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
