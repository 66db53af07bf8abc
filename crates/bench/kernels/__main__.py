"""The program `python -m kernels`. The record goes to stdout, progress to stderr."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

# Before any of the libraries is loaded: one thread each, and none started beside ours.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

from compare import machine as system  # noqa: E402
from compare.errors import BenchError  # noqa: E402
from compare.program import count, list_of, make_folder, run, written  # noqa: E402

from . import arm, limits, machine, measure, memory, panama, report, roofline  # noqa: E402
from .cases import DIMS, VARIANTS_DIM, VARIANTS_QUANTIZERS, cases  # noqa: E402
from .contender import Memory  # noqa: E402
from .lanewise import Library  # noqa: E402
from .native import Harness  # noqa: E402
from .peers import peers  # noqa: E402

QUICK_DIMS = (768,)


def main(arguments: list[str]) -> int:
    """Runs the benchmark; the answer is the exit status."""

    def work() -> None:
        options = _options(arguments)
        with tempfile.TemporaryDirectory() as folder:
            _benchmark(options, arguments, Path(folder))

    return run("kernels", work)


def _benchmark(options: argparse.Namespace, arguments: list[str], folder: Path) -> None:
    make_folder(options.out)
    harness = Harness(folder)
    library = Library(options.library, harness.named)
    others, missing = peers()
    kernels = _chosen(library.kernels, options.kernels)
    facts = system.describe("kernels", arguments)
    lucene, counts = _elsewhere(options, folder, missing)
    if hasattr(os, "sched_setaffinity"):
        # One CPU, the last: the first takes most interrupts.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    facts["peers"] = "; ".join(f"{p.name} {p.version} ({p.level})" for p in others)
    facts["level"] = library.level
    plan = measure.Plan(
        rounds=options.rounds or (3 if options.quick else 15),
        nanoseconds=0.3e6 if options.quick else 1.5e6,
    )
    place = Memory(options.memory or memory.default_bytes())
    facts["matrix"] = f"{place.matrix.size >> 20} MiB, L3 {memory.cache_bytes(3) >> 20} MiB"
    print("measuring what the caches and the memory give …", file=sys.stderr)
    levels = machine.levels(harness, library.features, place, plan.rounds)

    dims = options.dims or (QUICK_DIMS if options.quick else DIMS)
    rows, all_cases = [], cases(kernels, dims)
    progress = measure.Progress(len(all_cases))
    for case in all_cases:
        every = options.variants or case.dim == (
            VARIANTS_QUANTIZERS if case.is_scan else VARIANTS_DIM
        )
        contenders = library.contenders(case, every and not options.quick)
        for peer in others:
            contenders += peer.contenders(case)
        contenders += limits.contenders(harness, library.features, case)
        rows += measure.run(case, contenders, place, harness, plan)
        progress.step(case)
    progress.end()
    record = report.Record(facts, plan, levels, rows, library, missing, lucene, counts)
    name = options.out / f"kernels{_suffix(options)}"
    text = record.markdown()
    written(name.with_suffix(".md")).write_text(text)
    record.write_csv(written(name.with_suffix(".csv")))
    if not roofline.draw(written(name.with_suffix(".png")), record):
        print(f"no picture: nothing of it was measured at {roofline.DIM}", file=sys.stderr)
    print(text, flush=True)


def _chosen(known: list[tuple[str, str]], wanted: list[str] | None) -> list[tuple[str, str]]:
    names = ["_".join(kernel) for kernel in known]
    if unknown := set(wanted or ()) - set(names):
        raise BenchError(f"no kernel {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [kernel for kernel, name in zip(known, names, strict=True) if name in (wanted or names)]


def _elsewhere(
    options: argparse.Namespace, folder: Path, missing: list[str]
) -> tuple[list[panama.Figure], str | None]:
    """What other programs measure: Lucene's figures, and Arm's instructions. They take minutes,
    so a run of some kernels or sizes does without."""
    if _is_part(options):
        return [], None
    lucene: list[panama.Figure] = []
    if options.java:
        path = options.out / f"lucene{_suffix(options)}.csv"
        try:
            lucene = panama.measure(options.java, options.library.parent, path, options.quick)
        except BenchError as error:
            print(f"Lucene is left out: {error}", file=sys.stderr)
            missing.append(f"Lucene: {error}")
    return lucene, arm.table(folder, options.arm_library) if options.arm_library else None


def _is_part(options: argparse.Namespace) -> bool:
    return bool(options.kernels or options.dims)


def _suffix(options: argparse.Namespace) -> str:
    """Keeps the record of a smaller run from taking the place of a whole one's."""
    return ("-quick" if options.quick else "") + ("-part" if _is_part(options) else "")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "kernels", description="Lanewise's kernels beside other libraries', and the limits."
    )
    parser.add_argument(
        "--library",
        type=Path,
        required=True,
        metavar="PATH",
        help="liblanewise_kernels.so",
    )
    parser.add_argument(
        "--kernels",
        type=list_of(str),
        metavar="A,B",
        help="such as dot_i8,l2_f32 (all); then without Lucene and Arm",
    )
    parser.add_argument(
        "--dims",
        type=list_of(count),
        metavar="N,N",
        help=f"multiples of 64 ({','.join(map(str, DIMS))}); then without Lucene and Arm",
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help=f"every instruction set at every size, not only at {VARIANTS_DIM} dimensions",
    )
    parser.add_argument(
        "--rounds", type=count, metavar="N", help="interleaved rounds (15; quick: 3)"
    )
    parser.add_argument(
        "--memory",
        type=lambda text: count(text) << 20,
        metavar="MIB",
        help="size of the matrix that stands for memory (four times the L3), "
        f"{memory.LEAST >> 20} or more",
    )
    parser.add_argument(
        "--java", type=Path, metavar="PATH", help="scripts/java, which measures Lucene"
    )
    parser.add_argument(
        "--arm-library",
        type=Path,
        metavar="PATH",
        help="the library for aarch64: instructions of its variants are counted under qemu",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out"), metavar="DIR", help="where the record goes"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="768 dimensions, the chosen variants alone, fewer and shorter readings",
    )
    options = parser.parse_args(arguments)
    if any(dim % 64 or dim > 8192 for dim in options.dims or ()):
        parser.error("--dims must be multiples of 64, at most 8192")
    if options.memory and options.memory < memory.LEAST:
        parser.error(f"--memory must be {memory.LEAST >> 20} or more: a cache would hold less")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
