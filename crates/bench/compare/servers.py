"""The two servers, each started for a measurement and ended with it."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BenchError

ROOT = Path(__file__).resolve().parents[3]
STARTS_S, ENDS_S, PATIENCE_S = 180, 60, 3600
TICKS = os.sysconf("SC_CLK_TCK")
# A server rests once it took less than this share of a CPU for a second.
RESTING, LONGEST_S = 0.1, 1800


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers at `address` (host:port)."""

    name: str
    address: str
    pid: int
    version: str = ""

    def ask(
        self,
        method: str,
        path: str,
        read: Callable[[Any], Any] = lambda told: told,
        body: object = None,
    ) -> Any:
        """What `read` makes of the answer's JSON; BenchError with what it said otherwise."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return read(json.load(answer))
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:500]
            raise BenchError(f"{self.name}: {method} {path}: {said}") from error

    def cpu_seconds(self) -> float:
        """What its process has taken of the CPU."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rests(self) -> float:
        """Waits until it does nothing more; how long it went on, in seconds."""
        start = time.perf_counter()
        while time.perf_counter() - start < LONGEST_S:
            before = self.cpu_seconds()
            time.sleep(1)
            if self.cpu_seconds() - before < RESTING:
                return time.perf_counter() - start - 1
        raise BenchError(f"{self.name} does not come to rest")


@contextmanager
def lanewise(program: Path, folder: Path, isa: str | None = None) -> Iterator[Server]:
    """`lanewise serve`, with LANEWISE_ISA forced perhaps."""
    name = f"lanewise, {isa}" if isa else "lanewise"
    command = [program.resolve(), "serve", "--data", folder / "data", "--port"]
    with _started(name, command, folder, {"LANEWISE_ISA": isa} if isa else {}) as server:
        yield server


@contextmanager
def opensearch(folder: Path, cache: Path) -> Iterator[Server]:
    """A real OpenSearch, as scripts/opensearch fetches and runs it, with 2 GiB for Java."""
    command = ["sh", ROOT / "scripts/opensearch", "run", folder]
    environment = {"CACHE": str(cache.resolve()), "HEAP": "2g"}
    with _started("OpenSearch", command, folder, environment) as server:
        yield server


@contextmanager
def _started(
    name: str, command: list[Any], folder: Path, environment: Mapping[str, str]
) -> Iterator[Server]:
    """The server that `command` starts once a port is put behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, str(port)], stdout=log, stderr=log, env={**os.environ, **environment}
        )
    server = Server(name, f"127.0.0.1:{port}", process.pid)
    try:
        deadline = time.monotonic() + STARTS_S
        while True:
            try:
                version = server.ask("GET", "/", lambda told: told["version"])
                break
            except (OSError, BenchError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (folder / "log").read_text()[-2000:]
                    raise BenchError(f"{name} does not start: {said}") from error
                time.sleep(0.5)
        told = f"{version['number']}, {version['build_type']} {version['build_hash'][:10]}"
        yield Server(name, server.address, server.pid, told)
    finally:
        process.terminate()
        try:
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
