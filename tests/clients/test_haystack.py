"""Haystack's OpenSearchDocumentStore, unmodified: the behaviours that Haystack publishes as tests
for every store, and retrieval by vector and by words against exact answers."""

import itertools
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from exact import check, vectors
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing import document_store as published
from haystack_integrations.components.retrievers.opensearch import (
    OpenSearchBM25Retriever,
    OpenSearchEmbeddingRetriever,
)
from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

METHOD = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}


@pytest.fixture
def empty(
    url: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenSearchDocumentStore]:
    made = OpenSearchDocumentStore(
        hosts=url, index=index, embedding_dim=768, method=METHOD, return_embedding=True
    )
    # Their tests look at once at what they wrote; Haystack's own wrap it so too.
    for name in ("delete_by_filter", "update_by_filter"):
        monkeypatch.setattr(made, name, refreshing(getattr(made, name)))
    yield made
    made.close()


def refreshing(change: Callable[..., int]) -> Callable[..., int]:
    return lambda *args, **more: change(*args, **{**more, "refresh": True})


class TestPublished(
    published.DocumentStoreBaseTests,
    published.DeleteAllTest,
    published.DeleteByFilterTest,
    published.CountDocumentsByFilterTest,
    published.CountUniqueMetadataByFilterTest,
    published.GetMetadataFieldsInfoTest,
    published.GetMetadataFieldMinMaxTest,
):
    """What Haystack expects of every document store."""

    @pytest.fixture
    def document_store(self, empty: OpenSearchDocumentStore) -> OpenSearchDocumentStore:
        return empty

    def assert_documents_are_equal(
        self, received: list[Document], expected: list[Document]
    ) -> None:
        assert len(received) == len(expected)
        told = {each.id: each for each in received}
        for each in expected:
            assert told[each.id].meta == each.meta
            assert told[each.id].content == each.content

    def test_write_documents(self, document_store: OpenSearchDocumentStore) -> None:
        # As their own tests of this store have it: unless said, it does not overwrite.
        documents = [Document(id="1"), Document(id="2", content="x")]
        assert document_store.write_documents(documents) == 2
        with pytest.raises(published.DuplicateDocumentError):
            document_store.write_documents(documents, DuplicatePolicy.FAIL)

    def test_embeddings_come_back(self, document_store: OpenSearchDocumentStore) -> None:
        given = [0.1, -0.25, *[1.0] * 766]
        document_store.write_documents([Document(id="1", embedding=given)])
        assert document_store.filter_documents()[0].embedding == given


@pytest.mark.skipif(bool(os.environ.get("OPENSEARCH_URL")), reason="OpenSearch has painless")
def test_updates_by_script_are_refused_by_name(empty: OpenSearchDocumentStore) -> None:
    empty.write_documents([Document(id="1", meta={"n": 1})])
    everything = {"field": "meta.n", "operator": "==", "value": 1}
    with pytest.raises(Exception, match="script"):
        empty.update_by_filter(everything, {"n": 2})
    assert empty.filter_documents()[0].meta == {"n": 1}


DIM = 6
COUNT = 90
ROWS = vectors(COUNT, DIM)
QUERIES = vectors(5, DIM, seed=2)
DOCUMENTS = [
    Document(id=str(n), content=f"word{n % 7} number{n}", embedding=row.tolist(), meta={"n": n})
    for n, row in enumerate(ROWS)
]


@pytest.fixture
def filled(url: str, index: str) -> Iterator[OpenSearchDocumentStore]:
    made = OpenSearchDocumentStore(hosts=url, index=index, embedding_dim=DIM, method=METHOD)
    assert made.write_documents(DOCUMENTS) == COUNT
    yield made
    made.close()


def hits(found: list[Document]) -> list[tuple[str, float]]:
    return [(each.id, each.score) for each in found]


def test_retrieval_by_vector(filled: OpenSearchDocumentStore) -> None:
    retriever = OpenSearchEmbeddingRetriever(document_store=filled)
    for query in QUERIES:
        found = retriever.run(query.tolist(), top_k=7)["documents"]
        check(hits(found), "cosinesimil", ROWS, query, 7)


def test_retrieval_by_vector_of_some(filled: OpenSearchDocumentStore) -> None:
    retriever = OpenSearchEmbeddingRetriever(document_store=filled, efficient_filtering=True)
    some = {"field": "meta.n", "operator": ">=", "value": 40}
    for query in QUERIES:
        found = retriever.run(query.tolist(), filters=some, top_k=7)["documents"]
        check(hits(found), "cosinesimil", ROWS, query, 7, np.arange(COUNT) >= 40)


def test_retrieval_by_words(filled: OpenSearchDocumentStore) -> None:
    retriever = OpenSearchBM25Retriever(document_store=filled, fuzziness=0)
    found = retriever.run("number44 word3", top_k=20)["documents"]
    assert found[0].id == "44"
    # 44 itself, and those of word3: 3, 10, 17 ...
    expected = {"44", *(str(n) for n in range(3, COUNT, 7))}
    assert {each.id for each in found} == expected
    assert all(a.score >= b.score for a, b in itertools.pairwise(found))
    both = OpenSearchBM25Retriever(document_store=filled, fuzziness=0, all_terms_must_match=True)
    assert both.run("number45 word3")["documents"][0].id == "45"
    assert both.run("number44 word3")["documents"] == []
