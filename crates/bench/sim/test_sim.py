"""`lanewise sim` and its pictures, from the program to the page."""

import subprocess
import sys
from pathlib import Path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, check=False
    )


def test_what_is_simulated_becomes_pictures_that_say_so(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    asked = ["--machine", "2x2x1M", "--quick", "--figures", "14", "--figures", "8", "--out", out]
    ended = run("lanewise", "sim", *asked)
    assert ended.returncode == 0, ended.stderr
    ended = run("sim", out)
    assert ended.returncode == 0, ended.stderr
    pictures = {path.name for path in Path(out).glob("*.png")}
    assert pictures == {"figure-08.png", "figure-14.png"}
    page = (Path(out) / "page.md").read_text(encoding="utf-8")
    assert "simulated" in page.splitlines()[2].lower()
    assert "synthetic" in page
    for picture in pictures:
        assert f"({picture})" in page


def test_a_folder_without_figures_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    for folder in [tmp_path, tmp_path / "none"]:
        ended = run("sim", str(folder))
        assert ended.returncode == 2
        assert "run `lanewise sim --out" in ended.stderr
