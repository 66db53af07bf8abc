"""LangChain's OpenSearchVectorSearch, unmodified: writing, its ways of searching, deleting."""

import asyncio
import itertools
import os
from collections.abc import Iterator

import numpy as np
import pytest
from exact import check, scores, vectors
from langchain_community.vectorstores import OpenSearchVectorSearch
from langchain_core.embeddings import Embeddings
from opensearchpy import RequestError

DIM = 6
COUNT = 120
ROWS = vectors(COUNT + 10, DIM)
TEXTS = [f"text {n}" for n in range(len(ROWS))]
META = [{"n": n, "even": n % 2 == 0} for n in range(COUNT)]
ODD = np.arange(COUNT) % 2 == 1


class Known(Embeddings):
    """The vector of `text N` is row N."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return ROWS[int(text.split()[-1])].tolist()


def store(url: str, index: str, space: str = "l2", **more: object) -> OpenSearchVectorSearch:
    return OpenSearchVectorSearch.from_texts(
        TEXTS[:COUNT],
        Known(),
        metadatas=META,
        ids=[str(n) for n in range(COUNT)],
        opensearch_url=url,
        index_name=index,
        space_type=space,
        **{"engine": "lucene", **more},
    )


@pytest.fixture
def filled(url: str, index: str) -> Iterator[OpenSearchVectorSearch]:
    made = store(url, index)
    made.client.indices.refresh(index=index)
    yield made
    made.client.close()
    asyncio.run(made.async_client.close())


def hits(found: list) -> list[tuple[str, float]]:
    return [(str(document.metadata["n"]), score) for document, score in found]


@pytest.mark.parametrize("space", ["l2", "cosinesimil", "innerproduct"])
def test_similarity_search(url: str, index: str, space: str) -> None:
    made = store(url, index, space)
    made.client.indices.refresh(index=index)
    for query in range(COUNT, COUNT + 10):
        found = made.similarity_search_with_score(TEXTS[query], k=7)
        check(hits(found), space, ROWS[:COUNT], ROWS[query], 7)
        assert all(d.page_content == f"text {d.metadata['n']}" for d, _ in found)


def test_efficient_filter(filled: OpenSearchVectorSearch) -> None:
    odd = {"bool": {"filter": {"term": {"metadata.even": False}}}}
    for query in range(COUNT, COUNT + 10):
        found = filled.similarity_search_with_score(TEXTS[query], k=7, efficient_filter=odd)
        check(hits(found), "l2", ROWS[:COUNT], ROWS[query], 7, ODD)


def test_boolean_filter(filled: OpenSearchVectorSearch) -> None:
    asked = {"range": {"metadata.n": {"gte": COUNT // 2}}}
    for query in range(COUNT, COUNT + 10):
        found = filled.similarity_search_with_score(TEXTS[query], k=7, boolean_filter=asked)
        # The best 7 of all, of which the filter leaves some.
        best = np.argsort(-scores("l2", ROWS[:COUNT], ROWS[query]))[:7]
        allowed = np.isin(np.arange(COUNT), best) & (np.arange(COUNT) >= COUNT // 2)
        check(hits(found), "l2", ROWS[:COUNT], ROWS[query], 7, allowed)


@pytest.mark.parametrize("space", ["l2", "l1", "linf", "cosinesimil", "innerproduct"])
def test_script_scoring(filled: OpenSearchVectorSearch, space: str) -> None:
    asked = {"bool": {"filter": {"term": {"metadata.even": False}}}}
    for query in range(COUNT, COUNT + 10):
        found = filled.similarity_search_with_score(
            TEXTS[query], k=7, search_type="script_scoring", space_type=space, pre_filter=asked
        )
        check(hits(found), space, ROWS[:COUNT], ROWS[query], 7, ODD)


@pytest.mark.skipif(bool(os.environ.get("OPENSEARCH_URL")), reason="OpenSearch has painless")
def test_painless_is_refused_by_name(filled: OpenSearchVectorSearch) -> None:
    with pytest.raises(RequestError) as refused:
        filled.similarity_search(TEXTS[0], search_type="painless_scripting")
    assert refused.value.status_code == 400
    assert "script" in refused.value.info["error"]["reason"]


def test_score_threshold(filled: OpenSearchVectorSearch) -> None:
    query = ROWS[COUNT]
    expected = scores("l2", ROWS[:COUNT], query)
    least = float(np.sort(expected)[::-1][4]) * 0.999999
    found = filled.similarity_search_with_score(TEXTS[COUNT], k=20, score_threshold=least)
    check(hits(found), "l2", ROWS[:COUNT], query, 5)


def test_marginal_relevance(filled: OpenSearchVectorSearch) -> None:
    found = filled.max_marginal_relevance_search(TEXTS[COUNT], k=3, fetch_k=20, lambda_mult=1)
    best = np.argsort(-scores("cosinesimil", ROWS[:COUNT], ROWS[COUNT]))
    near = set(np.argsort(-scores("l2", ROWS[:COUNT], ROWS[COUNT]))[:20].tolist())
    expected = list(itertools.islice((n for n in best.tolist() if n in near), 3))
    assert [document.metadata["n"] for document in found] == expected


def test_adding_and_deleting(filled: OpenSearchVectorSearch, index: str) -> None:
    assert filled.index_exists()
    assert filled.add_texts(TEXTS[COUNT : COUNT + 1], [{"n": COUNT}], ids=["new"]) == ["new"]
    filled.client.indices.refresh(index=index)
    found = filled.similarity_search_with_score(TEXTS[COUNT], k=1)
    assert hits(found) == [(str(COUNT), 1.0)]
    assert filled.delete(["new", "0"], refresh_indices=True)
    assert filled.client.count(index=index)["count"] == COUNT - 1
    assert hits(filled.similarity_search_with_score(TEXTS[COUNT], k=1))[0][0] != str(COUNT)
    assert filled.delete_index()
    assert not filled.index_exists()


def test_asynchronously(url: str, index: str) -> None:
    async def session() -> None:
        made = await OpenSearchVectorSearch.afrom_texts(
            TEXTS[:COUNT],
            Known(),
            metadatas=META,
            ids=[str(n) for n in range(COUNT)],
            opensearch_url=url,
            index_name=index,
            engine="lucene",
        )
        made.client.indices.refresh(index=index)
        found = made.similarity_search_with_score(TEXTS[COUNT], k=5)
        check(hits(found), "l2", ROWS[:COUNT], ROWS[COUNT], 5)
        assert made.client.count(index=index)["count"] == COUNT
        await made.async_client.close()

    asyncio.run(session())


@pytest.mark.skipif(bool(os.environ.get("OPENSEARCH_URL")), reason="OpenSearch 3 has no nmslib")
def test_its_own_default_engine(url: str, index: str) -> None:
    made = OpenSearchVectorSearch.from_texts(
        TEXTS[:COUNT], Known(), metadatas=META, opensearch_url=url, index_name=index
    )
    found = made.similarity_search_with_score(TEXTS[COUNT], k=5)
    check(hits(found), "l2", ROWS[:COUNT], ROWS[COUNT], 5)
