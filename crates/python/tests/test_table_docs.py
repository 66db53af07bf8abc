"""The examples of docs/python-tables.md and of README's section on tables run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("page", "before"),
    [
        ("docs/python-tables.md", ""),
        ("README.md", "import lanewise, numpy as np\nx = np.random.normal(size=(10_000, 384))\n"),
    ],
)
def test_examples_run(
    page: str,
    before: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "lanewise.Table.create" in block]
    monkeypatch.chdir(tmp_path)
    exec(before + example, {})
    assert "<lanewise.Hits: 5 of " in capsys.readouterr().out
    assert (tmp_path / "products" / "manifest").is_file()
