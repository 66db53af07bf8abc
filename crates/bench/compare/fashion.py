"""Fashion-MNIST-784 (Xiao et al., 2017) from Debian's package: 60,000 images, 10,000 queries."""

import shutil
import subprocess
from pathlib import Path

from .errors import BenchError
from .files import BASE_IDX, QUERIES_IDX

PACKAGE = "dataset-fashion-mnist"
PACKAGE_FOLDER = Path("usr/share/datasets/fashion-mnist")


def fashion_mnist(cache: Path) -> Path:
    """The folder of Fashion-MNIST's idx files: installed, cached, or fetched into `cache`."""
    system = Path("/") / PACKAGE_FOLDER
    unpacked = cache / "fashion-mnist"
    for folder in (system, unpacked):
        if all((folder / name).is_file() for name in (BASE_IDX, QUERIES_IDX)):
            return folder
    _fetch(cache.resolve(), unpacked.resolve())
    return unpacked


def _fetch(cache: Path, unpacked: Path) -> None:
    """Downloads Debian's package and unpacks its data. Needs apt and its lists, not root."""
    remedy = f"install the package {PACKAGE}, or give other vectors with --data PATH"
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise BenchError(f"Fashion-MNIST is not here and there is no apt-get to fetch it: {remedy}")
    scratch = cache / "apt"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "lists/partial").mkdir(parents=True)
    (scratch / "archives/partial").mkdir(parents=True)
    # With lists of our own, `update` works for any user and leaves the system's alone.
    own = [
        f"-oDir::State::lists={scratch}/lists",
        f"-oDir::Cache={scratch}",
        "-oAPT::Sandbox::User=",
    ]
    download = ["download", PACKAGE]
    attempts = (
        [["apt-get", "-q", *download]],
        [["apt-get", "-q", *own, "update"], ["apt-get", "-q", *own, *download]],
    )
    for commands in attempts:
        said = [
            subprocess.run(each, cwd=scratch, capture_output=True, text=True) for each in commands
        ]
        package = next(scratch.glob("*.deb"), None)
        if said[-1].returncode == 0 and package:
            break
    else:
        raise BenchError(
            f"apt-get cannot fetch Fashion-MNIST ({said[-1].stderr.strip()}): {remedy}"
        )
    subprocess.run(["dpkg-deb", "-x", package, scratch / "root"], check=True)
    # Renamed last: a folder of that name is always whole.
    shutil.rmtree(unpacked, ignore_errors=True)
    (scratch / "root" / PACKAGE_FOLDER).rename(unpacked)
    shutil.rmtree(scratch, ignore_errors=True)
