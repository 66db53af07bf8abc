"""A node of our own: `lanewise serve` on a free port, ended with the test."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDS_S = 30


def lacks(reason: str) -> pytest.MarkDecorator:
    """What OpenSearch does and Lanewise does not yet: fails once it does."""
    return pytest.mark.xfail(not os.environ.get("OPENSEARCH_URL"), reason=reason)


@cache
def program() -> str:
    """The program: LANEWISE names it, else cargo builds it."""
    if given := os.environ.get("LANEWISE"):
        found = shutil.which(given)
        assert found, f"LANEWISE={given} is no program"
        return found
    subprocess.run(
        ["cargo", "build", "-q", "-p", "lanewise-cli", "--bin", "lanewise"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(ROOT / target / "debug/lanewise")


@contextmanager
def serve(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The URL of a node with its data in `folder`, and its log in `folder`/log."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [program(), "serve", "--data", str(folder / "data"), "--port", "0"]
    command += ["--set", f"path.repo={folder / 'repo'}", *arguments]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        assert process.stdout
        said = process.stdout.readline()
        assert " at http" in said, (folder / "log").read_text()
        yield said.split(" at ")[-1].strip()
        process.terminate()
        assert process.wait(ENDS_S) == 0, (folder / "log").read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
