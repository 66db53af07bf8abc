"""The stubs say what the compiled module does, and everything public is documented."""

import subprocess
import sys

import lanewise


def test_stubs_match_the_module() -> None:
    # The demo's modules have no stubs, and dependencies of their own.
    names = ["_lanewise", "errors", "table", "engine", "schema", "documents"]
    modules = [f"lanewise.{name}" for name in names]
    command = [sys.executable, "-m", "mypy.stubtest", *modules]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Success: no issues found in 6 modules" in done.stdout


def test_everything_public_is_documented() -> None:
    undocumented = [name for name in lanewise.__all__ if not getattr(lanewise, name).__doc__]
    assert undocumented == []
    for of, some in (
        (lanewise.Index, {"add", "search", "save", "open", "info", "dim"}),
        (lanewise.Engine, {"create", "table", "drop", "retry", "memory"}),
        (lanewise.Table, {"create", "open", "put", "put_many", "get", "search", "flush"}),
    ):
        members = [name for name in dir(of) if not name.startswith("_")]
        assert some <= set(members)
        assert [name for name in members if not getattr(of, name).__doc__] == []


def test_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert lanewise.__version__ == version("lanewise")
