"""What a record must say about the run: processor, load, versions, commit, command."""

import contextlib
import os
import platform
import shlex
import subprocess
from pathlib import Path

import numpy


def threads_available() -> int:
    """Threads this process may run at once, by its affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_now() -> float:
    """The machine's load average over the last minute, ours included."""
    return round(os.getloadavg()[0], 2)


def memory_available() -> int:
    """Bytes that processes may still take, by the kernel and by the container. Linux only;
    elsewhere 8 GiB are supposed."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):
        return 8 << 30
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # "max", or no such group: no limit
        limit = int((group / "memory.max").read_text())
        free = min(free, limit - int((group / "memory.current").read_text()))
    return free


def describe(program: str, arguments: list[str]) -> dict[str, str]:
    """Facts about machine and run by name, as the report prints them."""
    return {
        "cpu": f"{_cpu_model()}, {threads_available()} threads for us",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_version()}, numpy {numpy.__version__}",
        "commit": _commit(),
        "command": shlex.join(["python", "-m", program, *arguments]),
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str:
    def git(*args: str) -> str:
        folder = Path(__file__).parent
        return subprocess.run(
            ["git", *args], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + (
            " and changes" if git("status", "--porcelain") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
