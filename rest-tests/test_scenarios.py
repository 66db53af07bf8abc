"""The YAML files beside this one are scenarios, run on a node of ours or on OPENSEARCH_URL.

Documents of a file are `name: steps`; `setup` goes before each of them. All that is made is called
`test…` and dropped afterwards. A first step `lacks: reason` says what OpenSearch does and Lanewise
does not yet: such a scenario must fail on Lanewise and pass on OpenSearch.
"""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from node import lacks, serve
from opensearchpy import OpenSearch
from scenario import Run


def scenarios() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("*.yml")):
        parts: dict[str, list[dict[str, Any]]] = {}
        for part in yaml.safe_load_all(path.read_text()):
            twice = parts.keys() & part
            assert not twice, f"{path.name} has {twice} twice"
            parts.update(part)
        setup = parts.pop("setup", [])
        for name, steps in parts.items():
            lacked = [step["lacks"] for step in steps if "lacks" in step]
            steps = [step for step in steps if "lacks" not in step]
            marks = [lacks(reason) for reason in lacked]
            yield pytest.param(setup + steps, id=f"{path.stem}: {name}", marks=marks)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearch]:
    """A client of the server."""
    if given := os.environ.get("OPENSEARCH_URL"):
        with OpenSearch(given, timeout=60) as client:
            yield client
        return
    with serve(tmp_path_factory.mktemp("node")) as url, OpenSearch(url, timeout=60) as client:
        yield client


@pytest.fixture
def client(server: OpenSearch) -> Iterator[OpenSearch]:
    yield server
    server.indices.delete(index="test*", params={"expand_wildcards": "all"})
    for kind in ("index_template", "template"):
        getattr(server.indices, f"delete_{kind}")(name="test*", ignore=[404])
    server.cluster.delete_component_template(name="test*", ignore=[404])


@pytest.mark.parametrize("steps", list(scenarios()))
def test_scenario(client: OpenSearch, steps: list[dict[str, Any]]) -> None:
    __tracebackhide__ = True
    run = Run(client)
    for step in copy.deepcopy(steps):
        run.step(step)
