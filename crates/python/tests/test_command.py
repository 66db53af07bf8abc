"""The command `lanewise` that the package installs."""

import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import lanewise
import numpy as np
import pytest

SCRIPT = Path(sysconfig.get_path("scripts")) / "lanewise"


def run(*args: object, command: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = command or [str(SCRIPT)]
    return subprocess.run(
        [*command, *map(str, args)], capture_output=True, text=True, timeout=120, check=False
    )


def test_it_is_installed_and_a_module() -> None:
    for command in ([str(SCRIPT)], [sys.executable, "-m", "lanewise"]):
        done = run("--version", command=command)
        assert (done.returncode, done.stdout) == (0, f"lanewise {lanewise.__version__}\n")


def test_doctor_runs() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stderr
    assert lanewise.Index(2).info()["isa"] in done.stdout


@pytest.mark.parametrize("args", [[], ["fly"], ["search", "--nothing"]])
def test_wrong_use_is_told(args: list[str]) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_what_it_builds_python_opens(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    done = run("build", "-o", tmp_path / "index", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    lanewise.Index(16).add(x).save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "index").read_bytes()


def test_ctrl_c_ends_it() -> None:
    command = [str(SCRIPT), "demo", "--n", "2000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"making vectors up\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode in (-signal.SIGINT, 130)
