"""The program `python -m compare`. The record goes to stdout, progress to stderr."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from . import driver, machine, plot, recall, report
from .adapters import LIBRARIES
from .dataset import Source, fashion_mnist
from .errors import BenchError
from .program import count, list_of, make_folder, run, written

EFS = (10, 14, 20, 28, 40, 56, 80, 112, 160, 240, 400)
QUICK_EFS = (10, 20, 40, 80, 160)
QUICK_BASE_LEN = 10_000
QUERIES_LEN = 1_000


def main(arguments: list[str]) -> int:
    """Runs the comparison; the answer is the exit status."""
    return run("compare", lambda: _compare(_options(arguments), arguments))


def _compare(options: argparse.Namespace, arguments: list[str]) -> None:
    path = options.data or fashion_mnist(options.cache)
    name = options.data.stem if options.data else "fashion-mnist"
    if options.quick:
        name += "-quick"
    source = Source(path, options.queries, QUICK_BASE_LEN if options.quick else None, QUERIES_LEN)
    plan = driver.Plan(
        libraries=options.libraries,
        efs=options.ef or (QUICK_EFS if options.quick else EFS),
        threads=sorted({1, options.threads}),
        rounds=options.rounds or (2 if options.quick else 5),
        builds=options.builds,
        seconds=0.05 if options.quick else 0.2,
    )
    if min(plan.efs) < plan.k:
        raise BenchError(f"--ef must be {plan.k} or more: libraries differ in what they do below k")
    make_folder(options.out)
    facts = machine.describe("compare", arguments)
    data = source.load()
    if len(data.base) < plan.k:
        raise BenchError(f"--data holds {len(data.base)} vectors, at least {plan.k} are needed")
    truth = recall.cached_nearest(data, plan.k, options.cache)

    results = driver.run(plan, source, data, truth)
    record = {"facts": facts, "plan": asdict(plan), "results": asdict(results)}
    written(options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    text = report.markdown(f"{name}: queries a second at equal recall", facts, plan, data, results)
    written(options.out / f"{name}.md").write_text(text)
    if done := [row for row in results.rows if row.reason is None]:
        plot.draw(written(options.out / f"{name}.png"), f"{name}, {facts['cpu']}", done)
    print(text, flush=True)
    if not done:
        raise BenchError("no library could be run; the record says why")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "compare", description="Lanewise beside other vector indexes, in one run."
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="folder of idx files, .npz (train, test), .npy, .fvecs, .bvecs",
    )
    parser.add_argument(
        "--queries",
        type=Path,
        metavar="PATH",
        help="queries of --data, where it holds none",
    )
    parser.add_argument(
        "--libraries",
        type=list_of(_library),
        default=list(LIBRARIES),
        metavar="A,B",
        help=f"of {', '.join(LIBRARIES)}",
    )
    parser.add_argument("--ef", type=list_of(count), metavar="N,N", help="search breadths")
    parser.add_argument(
        "--rounds", type=count, metavar="N", help="interleaved rounds (5; quick: 2)"
    )
    parser.add_argument(
        "--builds", type=count, default=1, metavar="N", help="builds of each index (1)"
    )
    parser.add_argument(
        "--threads",
        type=count,
        default=machine.threads_available(),
        metavar="N",
        help="measured beside 1 (all)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(".cache/bench"),
        metavar="DIR",
        help="data and exact answers",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("bench-out"),
        metavar="DIR",
        help="where the records go",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"the first {QUICK_BASE_LEN:,} vectors, fewer and shorter readings",
    )
    return parser.parse_args(arguments)


def _library(text: str) -> str:
    if text not in LIBRARIES:
        raise argparse.ArgumentTypeError(f"unknown library {text!r}; known: {', '.join(LIBRARIES)}")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
