"""Cache folder of the demo: every file in it is whole or counts as absent.

Beside each file lies `NAME.sha256`, in the form that `sha256sum -c` reads. Both are
written under another name and renamed. The checksum goes first: whatever a crash
leaves behind fails the check and is made again.
"""

import contextlib
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import DemoError


def write(path: Path, blob: bytes) -> None:
    """Stores `blob` with its checksum; DemoError where the disk refuses."""
    digest = hashlib.sha256(blob).hexdigest()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(_digest_path(path), f"{digest}  {path.name}\n".encode())
        _replace(path, blob)
    except OSError as error:
        raise DemoError(
            f"cannot write {path}: {error.strerror}; give another folder with --cache"
        ) from error


def read(path: Path) -> bytes | None:
    """What `write` stored, or None where it is absent, or damaged (told on stderr)."""
    try:
        blob = path.read_bytes()
        digest = _digest_path(path).read_text("ascii", errors="replace").split(" ")[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DemoError(
            f"cannot read {path}: {error.strerror}; give another folder with --cache"
        ) from error
    if hashlib.sha256(blob).hexdigest() != digest:
        print(f"{path} is damaged; making it again", file=sys.stderr)
        return None
    return blob


def remove(path: Path) -> None:
    """Removes a file and its checksum where they exist."""
    for each in (path, _digest_path(path)):
        with contextlib.suppress(OSError):
            each.unlink()


def write_array(path: Path, array: NDArray[np.float32]) -> None:
    """Stores an array as .npy with its checksum."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write(path, buffer.getvalue())


def read_array(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """What `write_array` stored, or None where it is absent, damaged or of another shape."""
    blob = read(path)
    if blob is None:
        return None
    try:
        array: NDArray[np.float32] = np.load(io.BytesIO(blob), allow_pickle=False)
    except (ValueError, EOFError):
        return None
    return array if array.shape == shape and array.dtype == np.float32 else None


def _digest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _replace(path: Path, blob: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
