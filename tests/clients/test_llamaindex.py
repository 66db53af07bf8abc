"""LlamaIndex's OpensearchVectorStore, unmodified: adding, querying with filters, deleting."""

import asyncio
import os
from collections.abc import Iterator

import numpy as np
import pytest
from exact import check, scores, vectors
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore
from opensearchpy import OpenSearch

DIM = 6
COUNT = 120
ROWS = vectors(COUNT, DIM)
QUERIES = vectors(5, DIM, seed=2)
NUMBERS = np.arange(COUNT)
COLOURS = np.array(["dark red", "green", "blue"])[NUMBERS % 3]
NODES = [
    TextNode(
        id_=str(n),
        text=f"{COLOURS[n]} number{n}",
        embedding=row.tolist(),
        metadata={"n": n, "colour": str(COLOURS[n])},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc {n % 4}")},
    )
    for n, row in enumerate(ROWS)
]


@pytest.fixture
def store(url: str, index: str) -> Iterator[OpensearchVectorStore]:
    client = OpensearchVectorClient(url, index, DIM, engine="lucene", space_type="l2")
    made = OpensearchVectorStore(client)
    assert made.add(NODES) == [str(n) for n in range(COUNT)]
    yield made
    client.close()


def query(store: OpensearchVectorStore, number: int, **more: object) -> list[tuple[str, float]]:
    asked = VectorStoreQuery(query_embedding=QUERIES[number].tolist(), similarity_top_k=7, **more)
    found = store.query(asked)
    return list(zip(found.ids, found.similarities, strict=True))


def one(key: str, operator: FilterOperator, value: object) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])


def test_query(store: OpensearchVectorStore) -> None:
    for number, vector in enumerate(QUERIES):
        check(query(store, number), "l2", ROWS, vector, 7)
    asked = VectorStoreQuery(query_embedding=QUERIES[0].tolist(), similarity_top_k=1)
    (node,) = store.query(asked).nodes
    assert node.get_content() == NODES[int(node.node_id)].get_content()
    assert node.metadata == NODES[int(node.node_id)].metadata


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (one("n", FilterOperator.EQ, 5), NUMBERS == 5),
        (one("n", FilterOperator.NE, 5), NUMBERS != 5),
        (one("n", FilterOperator.GTE, 60), NUMBERS >= 60),
        (one("n", FilterOperator.IN, [1, 2, 3]), (NUMBERS >= 1) & (NUMBERS <= 3)),
        (one("n", FilterOperator.NIN, [1, 2, 3]), (NUMBERS < 1) | (NUMBERS > 3)),
        (
            MetadataFilters(
                filters=[
                    MetadataFilter(key="n", operator=FilterOperator.LT, value=10),
                    MetadataFilter(key="n", operator=FilterOperator.GT, value=110),
                ],
                condition=FilterCondition.OR,
            ),
            (NUMBERS < 10) | (NUMBERS > 110),
        ),
    ],
)
def test_filters(store: OpensearchVectorStore, asked: MetadataFilters, allowed: np.ndarray) -> None:
    for number, vector in enumerate(QUERIES):
        check(query(store, number, filters=asked), "l2", ROWS, vector, 7, allowed)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (one("colour", FilterOperator.EQ, "dark red"), COLOURS == "dark red"),
        (one("colour", FilterOperator.NE, "dark red"), COLOURS != "dark red"),
        (one("colour", FilterOperator.IN, ["dark red", "blue"]), COLOURS != "green"),
    ],
)
def test_filters_of_words(
    store: OpensearchVectorStore, asked: MetadataFilters, allowed: np.ndarray
) -> None:
    for number, vector in enumerate(QUERIES):
        check(query(store, number, filters=asked), "l2", ROWS, vector, 7, allowed)


def test_text_search(store: OpensearchVectorStore) -> None:
    asked = VectorStoreQuery(
        query_str="number77", similarity_top_k=5, mode=VectorStoreQueryMode.TEXT_SEARCH
    )
    assert store.query(asked).ids == ["77"]


@pytest.mark.skipif(
    bool(os.environ.get("OPENSEARCH_URL")), reason="needs OpenSearch's neural-search"
)
def test_hybrid(url: str, index: str) -> None:
    processors = [{"normalization-processor": {}}]
    OpenSearch(url).search_pipeline.put(
        id=f"{index}-pipeline", body={"phase_results_processors": processors}
    )
    client = OpensearchVectorClient(
        url, index, DIM, engine="lucene", search_pipeline=f"{index}-pipeline"
    )
    store = OpensearchVectorStore(client)
    store.add(NODES)
    found = query(store, 0, query_str="number77", mode=VectorStoreQueryMode.HYBRID)
    best = np.argsort(-scores("l2", ROWS, QUERIES[0]))[:7]
    assert {name for name, _ in found} <= {"77", *map(str, best)}
    client.close()


def test_deleting(store: OpensearchVectorStore) -> None:
    store.delete_nodes(["0", "1"])
    check(query(store, 0), "l2", ROWS, QUERIES[0], 7, NUMBERS > 1)
    store.delete_nodes(filters=one("n", FilterOperator.LT, 50))
    check(query(store, 0), "l2", ROWS, QUERIES[0], 7, NUMBERS >= 50)
    store.clear()
    assert query(store, 0) == []


def test_deleting_a_document(store: OpensearchVectorStore) -> None:
    store.delete("doc 3")
    check(query(store, 0), "l2", ROWS, QUERIES[0], 7, NUMBERS % 4 != 3)


def test_asynchronously(url: str, index: str) -> None:
    async def session() -> None:
        client = OpensearchVectorClient(url, index, DIM, engine="lucene")
        store = OpensearchVectorStore(client)
        await store.async_add(NODES)
        asked = VectorStoreQuery(query_embedding=QUERIES[0].tolist(), similarity_top_k=7)
        found = await store.aquery(asked)
        pairs = list(zip(found.ids, found.similarities, strict=True))
        check(pairs, "l2", ROWS, QUERIES[0], 7)
        await store.adelete_nodes(["0", "1"])
        await store.aclear()
        assert (await store.aquery(asked)).ids == []
        await client.aclose()

    asyncio.run(session())
