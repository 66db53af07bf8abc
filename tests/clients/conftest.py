"""What the tests share: a node for all of them, and an index name for each.

OPENSEARCH_URL, if set, is asked instead of a node of ours: so it is seen whether what the tests
expect is OpenSearch's.
"""

import itertools
import os
from collections.abc import Iterator

import pytest
from node import serve

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the node answers."""
    if given := os.environ.get("OPENSEARCH_URL"):
        avoid_derived_source(given)
        yield given
        return
    with serve(tmp_path_factory.mktemp("node")) as address:
        yield address


def avoid_derived_source(url: str) -> None:
    """OpenSearch 3.4 and 3.5 answer 503 after a delete by query with it (their issue 20622)."""
    from opensearchpy import OpenSearch

    settings = {"index.knn": True, "index.knn.derived_source.enabled": False}
    template = {"index_patterns": ["test-*"], "priority": 0, "template": {"settings": settings}}
    with OpenSearch(url, timeout=60) as client:
        client.indices.put_index_template(name="lanewise-tests", body=template)


@pytest.fixture
def index(url: str) -> Iterator[str]:
    """The name of an index that is not there, and is dropped after the test."""
    from opensearchpy import OpenSearch

    name = f"test-{os.getpid()}-{next(NUMBERS)}"
    yield name
    with OpenSearch(url, timeout=60) as client:
        client.indices.delete(index=name, ignore=[404])
