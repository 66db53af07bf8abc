"""Blue/green, as document 003 has it: a new index is loaded beside the old, warmed, and takes its
alias while clients search. No search fails, none sees both, and the way back is one request.
"""

import threading
import time
from dataclasses import dataclass, field

import numpy as np
from opensearchpy import OpenSearch, helpers

DIM, ROWS, CLIENTS, SWAPS = 16, 2000, 4, 20


@dataclass
class Seen:
    """What one client saw: when each search began and ended, and the generations in its answer."""

    searches: list[tuple[float, float, frozenset[str]]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def fill(client: OpenSearch, index: str, generation: str) -> None:
    vectors = np.random.default_rng(7).normal(size=(ROWS, DIM)).astype(np.float32)
    properties = {
        "v": {"type": "knn_vector", "dimension": DIM},
        "generation": {"type": "keyword"},
    }
    body = {"settings": {"index.knn": True}, "mappings": {"properties": properties}}
    client.indices.create(index=index, body=body)
    documents = (
        {"_index": index, "_id": str(i), "v": vector.tolist(), "generation": generation}
        for i, vector in enumerate(vectors)
    )
    helpers.bulk(client, documents, refresh=True)
    client.transport.perform_request("GET", f"/_plugins/_knn/warmup/{index}")


def search(url: str, alias: str, over: threading.Event, seed: int, seen: Seen) -> None:
    chance = np.random.default_rng(seed)
    with OpenSearch(url, timeout=60) as client:
        while not over.is_set():
            knn = {"v": {"vector": chance.normal(size=DIM).tolist(), "k": 10}}
            body = {"size": 10, "query": {"knn": knn}}
            began = time.monotonic()
            try:
                hits = client.search(index=alias, body=body)["hits"]["hits"]
            except Exception as error:
                seen.failed.append(repr(error))
                continue
            generations = frozenset(hit["_source"]["generation"] for hit in hits)
            if len(hits) != 10 or len({hit["_index"] for hit in hits}) != 1:
                seen.failed.append(f"{len(hits)} hits of {generations}")
            seen.searches.append((began, time.monotonic(), generations))


def swap(client: OpenSearch, alias: str, old: str, new: str) -> tuple[float, float]:
    began = time.monotonic()
    actions = [
        {"remove": {"index": old, "alias": alias}},
        {"add": {"index": new, "alias": alias}},
    ]
    client.indices.update_aliases(body={"actions": actions})
    return began, time.monotonic()


def test_no_search_fails_or_sees_both(url: str, index: str) -> None:
    blue, green = f"{index}-blue", f"{index}-green"
    over, seen = threading.Event(), [Seen() for _ in range(CLIENTS)]
    with OpenSearch(url, timeout=60) as client:
        fill(client, blue, "blue")
        client.indices.put_alias(index=blue, name=index)
        threads = [
            threading.Thread(target=search, args=(url, index, over, seed, one))
            for seed, one in enumerate(seen)
        ]
        try:
            [thread.start() for thread in threads]
            # Beside the searches.
            fill(client, green, "green")
            swaps = []
            for number in range(SWAPS):
                # There and, at once, back again.
                pair = (blue, green) if number % 2 == 0 else (green, blue)
                swaps.append((*swap(client, index, *pair), pair[1].rsplit("-", 1)[1]))
                time.sleep(0.05)
        finally:
            over.set()
            [thread.join() for thread in threads]
            client.indices.delete_alias(index=f"{index}-*", name=index, ignore=[404])
            client.indices.delete(index=[blue, green], ignore=[404])
    assert not [failure for one in seen for failure in one.failed]
    searches = [search for one in seen for search in one.searches]
    assert all(len(generations) == 1 for _, _, generations in searches)
    # Who asked after a swap was acknowledged, before the next, is answered by the new one alone.
    checked = 0
    ends = [began for began, _, _ in swaps[1:]] + [float("inf")]
    for (_, acknowledged, new), next_swap in zip(swaps, ends, strict=True):
        within = [g for start, end, g in searches if start > acknowledged and end < next_swap]
        assert all(generations == {new} for generations in within)
        checked += len(within)
    assert checked > SWAPS
