"""The program `python -m kernels`. The record goes to stdout, progress to stderr."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

# Before any of the libraries is loaded: one thread each, and none started beside ours.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

from compare import machine as system  # noqa: E402

from . import arm, limits, machine, measure, memory, panama, report, roofline  # noqa: E402
from .cases import DIMS, VARIANTS_DIM, VARIANTS_QUANTIZERS, cases  # noqa: E402
from .contender import Memory  # noqa: E402
from .errors import BenchError  # noqa: E402
from .lanewise import Library  # noqa: E402
from .native import Harness  # noqa: E402
from .peers import peers  # noqa: E402

QUICK_DIMS = (768,)


def main(arguments: list[str]) -> int:
    """Runs the benchmark; the answer is the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory() as folder:
            _benchmark(_options(arguments), arguments, Path(folder))
    except BenchError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kernels: interrupted", file=sys.stderr)
        return 130
    return 0


def _benchmark(options: argparse.Namespace, arguments: list[str], folder: Path) -> None:
    lucene = panama.read(options.panama) if options.panama and options.panama.exists() else []
    harness = Harness(folder)
    library = Library(options.library, harness.named)
    others, missing = peers()
    kernels = _chosen(library.kernels, options.kernels)
    facts = system.describe(arguments)
    if hasattr(os, "sched_setaffinity"):
        # One CPU, the last: the first takes most interrupts.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    facts["command"] = facts["command"].replace("compare", "kernels", 1)
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

    rows, all_cases = [], cases(kernels, options.dims or (QUICK_DIMS if options.quick else DIMS))
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
    counts = arm.table(folder, options.arm_library) if options.arm_library else None
    options.out.mkdir(parents=True, exist_ok=True)
    record = report.Record(facts, plan, levels, rows, library, missing, lucene, counts)
    text = record.markdown()
    _written(options.out / "kernels.md").write_text(text)
    record.write_csv(_written(options.out / "kernels.csv"))
    if not roofline.draw(_written(options.out / "kernels.png"), record):
        print(f"no picture: nothing of it was measured at {roofline.DIM}", file=sys.stderr)
    print(text, flush=True)


def _chosen(known: list[tuple[str, str]], wanted: list[str] | None) -> list[tuple[str, str]]:
    names = ["_".join(kernel) for kernel in known]
    if unknown := set(wanted or ()) - set(names):
        raise BenchError(f"no kernel {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [kernel for kernel, name in zip(known, names, strict=True) if name in (wanted or names)]


def _written(path: Path) -> Path:
    print(f"writing {path}", file=sys.stderr)
    return path


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
        type=lambda text: text.split(","),
        metavar="A,B",
        help="such as dot_i8,l2_f32 (all)",
    )
    parser.add_argument(
        "--dims",
        type=lambda text: tuple(_count(each) for each in text.split(",")),
        metavar="N,N",
        help=f"multiples of 64 ({','.join(map(str, DIMS))})",
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help=f"every instruction set at every size, not only at {VARIANTS_DIM} dimensions",
    )
    parser.add_argument(
        "--rounds", type=_count, metavar="N", help="interleaved rounds (15; quick: 3)"
    )
    parser.add_argument(
        "--memory",
        type=lambda text: _count(text) << 20,
        metavar="MIB",
        help="size of the matrix that stands for memory (four times the L3)",
    )
    parser.add_argument(
        "--panama", type=Path, metavar="CSV", help="Lucene's figures, if the file is there"
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
    return options


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 20):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
