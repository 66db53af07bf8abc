"""Instructions of a distance on 64-bit Arm, counted under qemu: our variants beside what the
compiler makes of the plain loop.

Each figure is the difference of two runs that differ in the number of calls, so that what
surrounds the calls drops out; the count is exact, whatever else the machine does. It includes
the call through a pointer. Fewer instructions are not a time, but the best that can be known of
an Arm core without one. The counter is `crates/bench/emulate/count.c`.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compare.errors import BenchError

from .native import HERE, KERNELS_C

DIMS = (256, 1024, 4096)
FEW, MANY = 10, 60
COUNTER = HERE.parent / "emulate" / "count.c"
COMMON = ("-std=gnu11", f"-I{KERNELS_C}", f"-I{HERE}")
SETS = {
    "compiler_scalar": ("-O3", "-fno-tree-vectorize", "-march=armv8-a"),
    "compiler_vector": ("-O3", "-ffast-math", "-march=armv8-a"),
    "compiler_sve": ("-O3", "-ffast-math", "-march=armv8.2-a+sve"),
}
SVE_BITS = (128, 256, 512)
PER_N = {"i4": 2, "u4": 2, "i8u4": 2, "u8u4": 2, "u4bits": 8, "bits": 8}


@dataclass(frozen=True)
class Column:
    """Who is counted, and the emulated core that has what it needs."""

    who: str
    title: str
    cpu: str


def columns(isas: list[str]) -> list[Column]:
    """The compiler's loops, then our instruction sets."""
    found = [
        Column("compiler_scalar", "compiler, scalar", "cortex-a72"),
        Column("compiler_vector", "compiler, vector", "cortex-a72"),
    ]
    cores = {"scalar": "cortex-a72", "neon": "cortex-a72", "dotprod": "neoverse-n1"}
    for isa in ("compiler_sve", *isas):
        if isa != "compiler_sve" and not isa.startswith("sve"):
            found.append(Column(isa, isa, cores.get(isa, "max,sve=off")))
            continue
        name = "compiler, SVE" if isa == "compiler_sve" else isa
        for bits in SVE_BITS:
            found.append(Column(isa, f"{name} {bits}", f"max,sve-max-vq={bits // 128}"))
    return found


class Emulator:
    """The counted program, built, and how it is run."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.qemu = _tool("qemu-aarch64", "qemu-user")
        cross = os.environ.get("ARM_CC", "aarch64-linux-gnu-gcc")
        cross = _tool(cross, "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")
        if not library.exists():
            raise BenchError(f"no {library}: build the library for aarch64 first")
        self.library = library.absolute()
        self.counter, self.program = folder / "count.so", folder / "arm_calls"
        _run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", self.counter, COUNTER])
        objects = []
        for name, flags in SETS.items():
            objects.append(folder / f"{name}.o")
            source = HERE / "arm_loops.c"
            _run([cross, *COMMON, *flags, f"-DSET={name}", "-c", source, "-o", objects[-1]])
        calls = HERE / "arm_calls.c"
        _run([cross, *COMMON, "-O1", calls, *objects, self.library, "-lm", "-o", self.program])
        # The cross compiler's own system libraries, wherever it keeps them.
        libc = Path(_run([cross, "-print-file-name=libc.so.6"]).stdout.strip()).resolve()
        self.root = libc.parents[1]

    def run(self, cpu: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program on an emulated `cpu`."""
        command = [self.qemu, "-L", self.root, "-cpu", cpu, "-plugin", self.counter]
        command += ["-E", f"LD_LIBRARY_PATH={self.library.parent}", self.program, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    def variants(self) -> list[tuple[str, str, str]]:
        """Operation, type and isa of every variant with a one-to-one form."""
        done = self.run("max", "--list")
        if done.returncode:
            raise BenchError(f"the counted program does not run under qemu:\n{done.stderr}")
        return [tuple(line.split()) for line in done.stdout.splitlines()]

    def instructions(self, column: Column, op: str, kind: str, dim: int) -> float | None:
        """Instructions of one call; None if `column` has no such kernel."""
        n, totals = dim // PER_N.get(kind, 1), []
        for times in (FEW, MANY):
            done = self.run(column.cpu, op, kind, column.who, str(n), str(times))
            if done.returncode == 3:
                return None
            found = re.search(r"^instructions (\d+)", done.stderr, re.MULTILINE)
            if done.returncode or not found:
                raise BenchError(
                    f"{op}_{kind} of {column.who} failed on an emulated {column.cpu} "
                    f"(status {done.returncode}): {done.stderr.strip()}"
                )
            totals.append(int(found[1]))
        return (totals[1] - totals[0]) / (MANY - FEW)


def table(folder: Path, library: Path) -> str:
    """The section of the record; or why there is none."""
    title = "## Arm: instructions a distance, one-to-one, under qemu"
    try:
        emulator = Emulator(folder, library)
        variants = emulator.variants()
    except BenchError as error:
        print(f"Arm is left out: {error}", file=sys.stderr)
        return f"{title}\n\nNot counted: {error}"
    isas = list(dict.fromkeys(isa for *_, isa in variants))
    kernels = list(dict.fromkeys((op, kind) for op, kind, isa in variants if isa != "scalar"))
    print(f"counting {len(kernels)} Arm kernels under qemu …", file=sys.stderr)
    heads = columns(isas)
    lines = [["kernel", "dim", *(head.title for head in heads)]]
    lines.append(["---"] * len(lines[0]))
    for op, kind in kernels:
        for dim in DIMS:
            counts = [emulator.instructions(head, op, kind, dim) for head in heads]
            texts = ["" if count is None else f"{count:.0f}" for count in counts]
            lines.append([f"{op}_{kind}", str(dim), *texts])
    return f"{title}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _tool(name: str, package: str) -> str:
    if not (found := shutil.which(name)):
        raise BenchError(f"no {name}: install {package}")
    return found


def _run(command: list) -> subprocess.CompletedProcess[str]:
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"{command[0]} failed:\n{done.stderr}")
    return done


def main(arguments: list[str]) -> int:
    """`python -m kernels.arm LIBRARY`: the table alone."""
    import tempfile

    if len(arguments) != 1:
        print("usage: python -m kernels.arm liblanewise_kernels.so (for aarch64)", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(table(Path(folder), Path(arguments[0])))
    except BenchError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
