"""opensearch-py, unmodified: plain, asynchronous, compressed, its bulk helpers, users and TLS."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact import check, vectors
from node import program, serve
from opensearchpy import (
    AsyncOpenSearch,
    AuthenticationException,
    AuthorizationException,
    ConflictError,
    NotFoundError,
    OpenSearch,
    RequestError,
    helpers,
)

DIM = 8
COUNT = 500
ROWS = vectors(COUNT, DIM)
QUERIES = vectors(10, DIM, seed=2)
COLOURS = np.array(["red", "green", "blue"])[np.arange(COUNT) % 3]


def body(space: str = "l2") -> dict[str, Any]:
    """An index of documents with a vector each."""
    method = {"name": "hnsw", "engine": "lucene", "space_type": space}
    return {
        "settings": {"index.knn": True, "number_of_replicas": 0, "number_of_shards": 1},
        "mappings": {
            "properties": {
                "v": {"type": "knn_vector", "dimension": DIM, "method": method},
                "colour": {"type": "keyword"},
                "n": {"type": "integer"},
                "text": {"type": "text"},
            }
        },
    }


def actions(index: str) -> list[dict[str, Any]]:
    """All documents, numbered by their ids."""
    return [
        {
            "_index": index,
            "_id": n,
            "v": row.tolist(),
            "colour": str(COLOURS[n]),
            "n": n,
            "text": f"number {n} is {COLOURS[n]}",
        }
        for n, row in enumerate(ROWS)
    ]


def knn(query: np.ndarray, k: int = 10, **more: Any) -> dict[str, Any]:
    """A search by vector that looks at nearly everything, so that it is exact."""
    asked = {"vector": query.tolist(), "k": k, "method_parameters": {"ef_search": COUNT}, **more}
    return {"size": k, "query": {"knn": {"v": asked}}, "_source": False}


def hits(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]


@pytest.fixture
def client(url: str) -> OpenSearch:
    with OpenSearch(url, timeout=60) as client:
        yield client


@pytest.fixture
def filled(client: OpenSearch, index: str) -> OpenSearch:
    client.indices.create(index=index, body=body())
    assert helpers.bulk(client, actions(index), refresh=True) == (COUNT, [])
    return client


@pytest.mark.parametrize("space", ["l2", "cosinesimil", "innerproduct"])
@pytest.mark.parametrize("compress", [False, True])
def test_bulk_and_search(url: str, index: str, space: str, compress: bool) -> None:
    with OpenSearch(url, http_compress=compress, timeout=60) as client:
        made = client.indices.create(index=index, body=body(space))
        assert made == {"acknowledged": True, "shards_acknowledged": True, "index": index}
        assert helpers.bulk(client, actions(index), chunk_size=70, refresh=True) == (COUNT, [])
        assert client.count(index=index)["count"] == COUNT
        for query in QUERIES:
            check(hits(client.search(index=index, body=knn(query))), space, ROWS, query, 10)


def test_filtered_search(filled: OpenSearch, index: str) -> None:
    numbers = np.arange(COUNT)
    for query in QUERIES:
        for asked, allowed in [
            ({"term": {"colour": "red"}}, COLOURS == "red"),
            ({"terms": {"colour": ["red", "blue"]}}, COLOURS != "green"),
            ({"range": {"n": {"gte": 490}}}, numbers >= 490),
            ({"ids": {"values": [3, 4, "5"]}}, (numbers >= 3) & (numbers <= 5)),
            (
                {
                    "bool": {
                        "filter": [{"range": {"n": {"lt": 300}}}],
                        "must_not": [{"term": {"colour": "green"}}],
                    }
                },
                (numbers < 300) & (COLOURS != "green"),
            ),
        ]:
            found = filled.search(index=index, body=knn(query, filter=asked))
            check(hits(found), "l2", ROWS, query, 10, allowed)


def test_asynchronous(url: str, index: str) -> None:
    async def session() -> None:
        async with AsyncOpenSearch(url, timeout=60) as client:
            await client.indices.create(index=index, body=body())
            done = await helpers.async_bulk(client, actions(index), chunk_size=100, refresh=True)
            assert done == (COUNT, [])
            asked = [client.search(index=index, body=knn(query)) for query in QUERIES]
            for query, found in zip(QUERIES, await asyncio.gather(*asked), strict=True):
                check(hits(found), "l2", ROWS, query, 10)
            seen = {hit["_id"] async for hit in helpers.async_scan(client, index=index, size=64)}
            assert seen == {str(n) for n in range(COUNT)}

    asyncio.run(session())


def test_streaming_and_parallel_bulk(client: OpenSearch, index: str) -> None:
    client.indices.create(index=index, body=body())
    half = COUNT // 2
    streamed = list(helpers.streaming_bulk(client, actions(index)[:half], chunk_size=33))
    assert [told["index"]["_id"] for _, told in streamed] == [str(n) for n in range(half)]
    rest = actions(index)[half:]
    parallel = list(helpers.parallel_bulk(client, rest, thread_count=4, chunk_size=20))
    assert all(good for good, _ in parallel)
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == COUNT
    check(hits(client.search(index=index, body=knn(QUERIES[0]))), "l2", ROWS, QUERIES[0], 10)


def test_bulk_tells_what_failed(filled: OpenSearch, index: str) -> None:
    mixed = [
        {"_op_type": "create", "_index": index, "_id": 7, "n": 0},
        {"_op_type": "delete", "_index": index, "_id": "none"},
        {"_op_type": "update", "_index": index, "_id": 8, "doc": {"colour": "black"}},
        {"_op_type": "index", "_index": index, "_id": 9, "v": [1.0]},
        {"_op_type": "index", "_index": index, "_id": 10, "n": "no number"},
    ]
    done, errors = helpers.bulk(filled, mixed, raise_on_error=False, refresh=True)
    assert done == 1
    told = [next(iter(each.items())) for each in errors]
    assert [(op, each["status"]) for op, each in told] == [
        ("create", 409),
        ("delete", 404),
        ("index", 400),
        ("index", 400),
    ]
    assert told[0][1]["error"]["type"] == "version_conflict_engine_exception"
    assert told[2][1]["error"]["type"] == "mapper_parsing_exception"
    assert filled.get(index=index, id=8)["_source"]["colour"] == "black"
    # What failed changed nothing.
    assert filled.get(index=index, id=9)["_source"]["n"] == 9
    with pytest.raises(helpers.BulkIndexError):
        helpers.bulk(filled, mixed[:1])


def test_scan_finds_every_document_once(filled: OpenSearch, index: str) -> None:
    red = {"query": {"term": {"colour": "red"}}}
    found = [hit["_source"]["n"] for hit in helpers.scan(filled, red, index=index, size=7)]
    assert sorted(found) == list(range(0, COUNT, 3))


def test_documents(client: OpenSearch, index: str) -> None:
    client.indices.create(index=index, body=body())
    made = client.index(index=index, id="a", body={"n": 1, "v": [1.5] * DIM}, refresh=True)
    assert (made["result"], made["_version"], made["_shards"]["failed"]) == ("created", 1, 0)
    with pytest.raises(ConflictError):
        client.create(index=index, id="a", body={"n": 2})
    changed = client.update(index=index, id="a", body={"doc": {"n": 2}}, refresh=True)
    assert (changed["result"], changed["_version"]) == ("updated", 2)
    with pytest.raises(ConflictError):
        client.index(
            index=index,
            id="a",
            body={"n": 3},
            if_seq_no=made["_seq_no"],
            if_primary_term=made["_primary_term"],
        )
    many = client.mget(index=index, body={"ids": ["a", "b"]})["docs"]
    assert [each["found"] for each in many] == [True, False]
    assert many[0]["_source"]["n"] == 2
    assert client.exists(index=index, id="a")
    assert client.delete(index=index, id="a", refresh=True)["result"] == "deleted"
    assert not client.exists(index=index, id="a")
    with pytest.raises(NotFoundError) as missing:
        client.get(index=index, id="a")
    assert missing.value.info["found"] is False
    own = client.index(index=index, body={"n": 5})["_id"]
    assert client.get(index=index, id=own)["_source"] == {"n": 5}


def test_vectors_come_back_as_they_were_given(client: OpenSearch, index: str) -> None:
    client.indices.create(index=index, body=body("cosinesimil"))
    given = {"n": 1, "v": [0.1, 0.2, 0.3, 4, 5, -6, 7e-3, 8]}
    client.index(index=index, id="a", body=given, refresh=True)
    assert client.get(index=index, id="a")["_source"] == given
    assert client.search(index=index)["hits"]["hits"][0]["_source"] == given
    client.update(index=index, id="a", body={"doc": {"n": 2}}, refresh=True)
    assert client.get(index=index, id="a")["_source"] == {**given, "n": 2}


def test_text_sorting_and_aggregations(filled: OpenSearch, index: str) -> None:
    found = filled.search(index=index, body={"query": {"match": {"text": "77"}}})
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["77"]
    asked = {
        "size": 3,
        "query": {"range": {"n": {"lt": 100}}},
        "sort": [{"colour": "desc"}, {"n": "asc"}],
        "aggs": {"colours": {"terms": {"field": "colour"}}, "n": {"stats": {"field": "n"}}},
    }
    found = filled.search(index=index, body=asked)
    assert found["hits"]["total"] == {"value": 100, "relation": "eq"}
    assert [hit["sort"] for hit in found["hits"]["hits"]] == [["red", 0], ["red", 3], ["red", 6]]
    after = filled.search(index=index, body={**asked, "search_after": ["red", 6]})
    assert [hit["sort"][1] for hit in after["hits"]["hits"]] == [9, 12, 15]
    counts = {each["key"]: each["doc_count"] for each in buckets(found, "colours")}
    assert counts == {"red": 34, "green": 33, "blue": 33}
    numbers = found["aggregations"]["n"]
    assert (numbers["min"], numbers["max"], numbers["sum"]) == (0, 99, 4950)


def buckets(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return found["aggregations"][name]["buckets"]


def test_msearch(filled: OpenSearch, index: str) -> None:
    lines: list[dict[str, Any]] = []
    for query in QUERIES:
        lines += [{"index": index}, knn(query)]
    lines += [{"index": "none"}, {"query": {"match_all": {}}}]
    answers = filled.msearch(body=lines)["responses"]
    for query, found in zip(QUERIES, answers, strict=False):
        check(hits(found), "l2", ROWS, query, 10)
    assert answers[-1]["status"] == 404
    assert answers[-1]["error"]["type"] == "index_not_found_exception"


def test_by_query(filled: OpenSearch, index: str) -> None:
    red = {"query": {"term": {"colour": "red"}}}
    gone = filled.delete_by_query(index=index, body=red, refresh=True)
    assert (gone["deleted"], gone["failures"]) == ((COUNT + 2) // 3, [])
    for query in QUERIES:
        check(
            hits(filled.search(index=index, body=knn(query))),
            "l2",
            ROWS,
            query,
            10,
            COLOURS != "red",
        )
    again = filled.update_by_query(index=index, body={"query": {"match_all": {}}}, refresh=True)
    assert again["updated"] == filled.count(index=index)["count"]


def test_aliases_swap_at_once(filled: OpenSearch, index: str) -> None:
    other, alias = f"{index}-2", f"{index}-alias"
    filled.indices.create(index=other, body=body())
    filled.indices.put_alias(index=index, name=alias)
    assert filled.count(index=alias)["count"] == COUNT
    moves = [
        {"remove": {"index": index, "alias": alias}},
        {"add": {"index": other, "alias": alias}},
    ]
    filled.indices.update_aliases(body={"actions": moves})
    assert list(filled.indices.get_alias(name=alias)) == [other]
    assert filled.count(index=alias)["count"] == 0
    filled.indices.delete(index=other)
    assert not filled.indices.exists_alias(name=alias)


def test_templates(client: OpenSearch, index: str) -> None:
    template = {"index_patterns": [f"{index}*"], "priority": 1, "template": body("cosinesimil")}
    client.indices.put_index_template(name=index, body=template)
    try:
        assert helpers.bulk(client, actions(index), refresh=True) == (COUNT, [])
        found = client.search(index=index, body=knn(QUERIES[0]))
        check(hits(found), "cosinesimil", ROWS, QUERIES[0], 10)
    finally:
        client.indices.delete_index_template(name=index)


def test_upkeep_and_what_is_told(filled: OpenSearch, index: str) -> None:
    assert filled.info()["version"]["distribution"] == "opensearch"
    assert filled.cluster.health(index=index, wait_for_status="green")["status"] == "green"
    assert filled.indices.forcemerge(index=index, max_num_segments=1)["_shards"]["failed"] == 0
    check(hits(filled.search(index=index, body=knn(QUERIES[0]))), "l2", ROWS, QUERIES[0], 10)
    told = filled.indices.stats(index=index)["indices"][index]["primaries"]
    assert told["docs"] == {"count": COUNT, "deleted": 0}
    assert told["segments"]["count"] == 1
    rows = filled.cat.indices(index=index, params={"format": "json", "h": "index,docs.count"})
    assert rows == [{"index": index, "docs.count": str(COUNT)}]
    filled.indices.put_settings(index=index, body={"index": {"knn.algo_param.ef_search": 77}})
    settings = filled.indices.get_settings(index=index, params={"flat_settings": "true"})
    assert settings[index]["settings"]["index.knn.algo_param.ef_search"] == "77"
    field = filled.indices.get_mapping(index=index)[index]["mappings"]["properties"]["v"]
    assert (field["type"], field["dimension"]) == ("knn_vector", DIM)


def test_errors_are_typed(filled: OpenSearch, index: str) -> None:
    with pytest.raises(NotFoundError) as missing:
        filled.search(index="none", body={})
    assert (missing.value.status_code, missing.value.error) == (404, "index_not_found_exception")
    with pytest.raises(RequestError) as twice:
        filled.indices.create(index=index)
    assert twice.value.error == "resource_already_exists_exception"
    with pytest.raises(RequestError) as short:
        filled.search(index=index, body=knn(QUERIES[0][:3]))
    assert short.value.status_code == 400
    with pytest.raises(RequestError):
        filled.search(index=index, body={"query": {"none_such": {}}})


def certificate(folder: Path) -> list[str]:
    """Arguments of a certificate for this machine, made by OpenSSL."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = [str(folder / "cert.pem"), str(folder / "key.pem")]
    subprocess.run(
        [*command.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True
    )
    return ["--tls-certificate", files[0], "--tls-key", files[1]]


def test_users_and_tls(tmp_path: Path) -> None:
    users = str(tmp_path / "users.toml")
    for name, role in [("anna", "admin"), ("ben", "read")]:
        subprocess.run(
            [program(), "user", "add", name, "--role", role, "--users", users],
            input=f"secret of {name}\n",
            text=True,
            check=True,
            capture_output=True,
        )
    tls = certificate(tmp_path)
    with serve(tmp_path / "node", "--users", users, *tls) as url:
        assert url.startswith("https://")

        def as_user(name: str, password: str) -> OpenSearch:
            return OpenSearch(url, http_auth=(name, password), ca_certs=tls[1], timeout=60)

        with as_user("anna", "secret of anna") as anna:
            anna.indices.create(index="t", body=body())
            assert helpers.bulk(anna, actions("t"), refresh=True) == (COUNT, [])
        with as_user("ben", "secret of ben") as ben:
            found = ben.search(index="t", body=knn(QUERIES[0]))
            check(hits(found), "l2", ROWS, QUERIES[0], 10)
            with pytest.raises(AuthorizationException):
                ben.index(index="t", body={"n": 1})
        with as_user("ben", "secret of anna") as wrong, pytest.raises(AuthenticationException):
            wrong.info()
