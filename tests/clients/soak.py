"""A soak: clients write, delete, search and swap aliases as fast as they are answered, each
against a model of what is its own; `make soak` runs ten minutes of it and prints a table.

Each client owns some ids of a shared index, and knows what they hold. It writes and deletes them,
in bulk and one by one, gets them, and searches exactly among its own (a filter). An answer that its
model does not give is wrong. One client more swaps an alias between two indexes. Merges and flushes
go on all the time, and some are asked for. The node's memory is sampled: after the first third it
should be flat.
"""

import argparse
import multiprocessing as mp
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from node import serve
from opensearchpy import ConnectionError as NotConnected
from opensearchpy import NotFoundError, OpenSearch, TransportError

DIM, OWN, K = 32, 400, 10
INDEX = "soak"
PROPERTIES = {
    "v": {"type": "knn_vector", "dimension": DIM, "space_type": "l2"},
    "owner": {"type": "keyword"},
    "n": {"type": "integer"},
    "text": {"type": "text"},
}
WORDS = ["red", "green", "blue", "lamp", "river", "train"]


class Wrong(Exception):
    """An answer that the model does not give."""


class Owner:
    """A client and the model of what it owns."""

    def __init__(self, url: str, number: int, seed: int) -> None:
        self.client = OpenSearch(url, timeout=120, max_retries=0)
        self.name, self.chance = f"owner-{number}", random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.documents: dict[str, dict] = {}
        self.done: Counter[str] = Counter()

    def document(self) -> dict:
        vector = self.numbers.normal(size=DIM).astype(np.float32)
        words = " ".join(self.chance.choices(WORDS, k=3))
        return {
            "v": vector.tolist(),
            "owner": self.name,
            "n": self.chance.randrange(100),
            "text": words,
        }

    def an_id(self) -> str:
        return f"{self.name}-{self.chance.randrange(OWN)}"

    def step(self) -> None:
        steps = [
            (self.bulk, 6),
            (self.write, 10),
            (self.update, 6),
            (self.delete, 8),
            (self.get, 15),
            (self.near, 30),
            (self.ordered, 10),
            (self.words, 10),
            (self.count, 5),
        ]
        step = self.chance.choices([s for s, _ in steps], [w for _, w in steps])[0]
        step()
        self.done[step.__name__] += 1

    def bulk(self) -> None:
        lines, expected = [], []
        for key in {self.an_id() for _ in range(self.chance.randrange(1, 60))}:
            if self.chance.random() < 0.3:
                lines.append({"delete": {"_index": INDEX, "_id": key}})
                expected.append((200 if key in self.documents else 404, key, None))
            else:
                document = self.document()
                lines += [{"index": {"_index": INDEX, "_id": key}}, document]
                expected.append((200 if key in self.documents else 201, key, document))
        answer = self.client.bulk(body=lines)
        for item, (status, key, document) in zip(answer["items"], expected, strict=True):
            (said,) = item.values()
            self.same(said["status"], status, key)
            self.now(key, document)

    def now(self, key: str, document: dict | None) -> None:
        if document is None:
            self.documents.pop(key, None)
        else:
            self.documents[key] = document

    def write(self) -> None:
        key, document = self.an_id(), self.document()
        said = self.client.index(index=INDEX, id=key, body=document)["result"]
        self.same(said, "updated" if key in self.documents else "created", key)
        self.documents[key] = document

    def update(self) -> None:
        key, n = self.an_id(), self.chance.randrange(100)
        try:
            self.client.update(index=INDEX, id=key, body={"doc": {"n": n}})
            self.same(key in self.documents, True, key)
            self.documents[key] = {**self.documents[key], "n": n}
        except NotFoundError:
            self.same(key in self.documents, False, key)

    def delete(self) -> None:
        key = self.an_id()
        answer = self.client.delete(index=INDEX, id=key, ignore=[404])
        self.same(answer["result"], "deleted" if key in self.documents else "not_found", key)
        self.documents.pop(key, None)

    def get(self) -> None:
        key = self.an_id()
        found = self.client.get(index=INDEX, id=key, ignore=[404])
        self.same(found["found"], key in self.documents, key)
        if found["found"]:
            said, expected = found["_source"], self.documents[key]
            self.same({**said, "v": 0}, {**expected, "v": 0}, key)
            self.same(np.float32(said["v"]).tolist(), expected["v"], key)

    def search(self, body: dict) -> dict:
        return self.client.search(index=INDEX, body={"_source": False, **body})["hits"]

    def near(self) -> None:
        query = self.numbers.normal(size=DIM).astype(np.float32)
        n = self.chance.choice([None, 50])
        among = [key for key, d in self.documents.items() if n is None or d["n"] >= n]
        filters: list[dict] = [{"term": {"owner": self.name}}]
        if n is not None:
            filters.append({"range": {"n": {"gte": n}}})
        knn = {"vector": query.tolist(), "k": K, "filter": {"bool": {"filter": filters}}}
        hits = self.search({"size": K, "query": {"knn": {"v": knn}}})["hits"]
        self.same(len(hits), min(K, len(among)), "hits")
        if not among:
            return
        vectors = np.array([self.documents[key]["v"] for key in among], dtype=np.float64)
        distances = dict(zip(among, ((vectors - query) ** 2).sum(axis=1), strict=True))
        strangers = [hit["_id"] for hit in hits if hit["_id"] not in distances]
        self.same(strangers, [], "neighbours")
        # So few are compared exactly.
        best = sorted(distances.values())[: len(hits)]
        for hit, distance in zip(hits, best, strict=True):
            score = 1 / (1 + distance)
            if abs(hit["_score"] - score) > 1e-5 * score:
                raise Wrong(f"{self.name}: {hit['_id']} has {hit['_score']}, expected {score}")

    def ordered(self) -> None:
        own = {"term": {"owner": self.name}}
        body = {"size": 50, "query": own, "sort": [{"n": "desc"}], "track_total_hits": True}
        hits = self.search(body)
        self.same(hits["total"]["value"], len(self.documents), "total")
        expected = sorted((d["n"] for d in self.documents.values()), reverse=True)[:50]
        self.same([hit["sort"][0] for hit in hits["hits"]], expected, "order")

    def words(self) -> None:
        word = self.chance.choice(WORDS)
        body = {
            "bool": {
                "must": [{"match": {"text": word}}],
                "filter": [{"term": {"owner": self.name}}],
            }
        }
        hits = self.search({"size": OWN, "query": body})["hits"]
        expected = {key for key, d in self.documents.items() if word in d["text"].split()}
        self.same({hit["_id"] for hit in hits}, expected, word)

    def count(self) -> None:
        own = {"query": {"term": {"owner": self.name}}}
        said = self.client.count(index=INDEX, body=own)["count"]
        self.same(said, len(self.documents), "count")

    def same(self, said: object, expected: object, what: str) -> None:
        if said != expected:
            raise Wrong(f"{self.name}: {what}: {said!r}, expected {expected!r}")


def own(url: str, number: int, seed: int, until: float, results: mp.Queue) -> None:
    owner, wrong = Owner(url, number, seed), []
    while time.monotonic() < until and len(wrong) < 10:
        try:
            owner.step()
        except Wrong as error:
            wrong.append(str(error))
        except (TransportError, NotConnected) as error:
            wrong.append(f"{owner.name}: {error!r}")
    results.put((owner.done, wrong))


def swap(url: str, until: float, results: mp.Queue) -> None:
    """Swaps an alias between two indexes and sees that it is of the new one; asks for merges."""
    client, wrong, done = OpenSearch(url, timeout=120, max_retries=0), [], Counter()
    names = ["soak-blue", "soak-green"]
    for name in names:
        client.indices.create(index=name, body={"mappings": {"properties": PROPERTIES}})
        client.index(index=name, id="1", body={"owner": name})
    client.indices.put_alias(index=names[0], name="soak-alias")
    while time.monotonic() < until and len(wrong) < 10:
        old, new = names[done["swap"] % 2], names[(done["swap"] + 1) % 2]
        try:
            actions = [{"remove": {"index": old, "alias": "soak-alias"}}]
            actions.append({"add": {"index": new, "alias": "soak-alias"}})
            client.indices.update_aliases(body={"actions": actions})
            hits = client.search(index="soak-alias", body={})["hits"]["hits"]
            if [hit["_source"]["owner"] for hit in hits] != [new]:
                wrong.append(f"after the swap to {new}: {hits}")
            done["swap"] += 1
            if done["swap"] % 50 == 0:
                client.indices.forcemerge(index=INDEX, max_num_segments=3)
                done["forcemerge"] += 1
        except (TransportError, NotConnected) as error:
            wrong.append(f"swap: {error!r}")
        time.sleep(0.1)
    results.put((done, wrong))


def resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        # Without pages of files.
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no RssAnon: is this Linux?")


def child_of(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])


def soak(
    seconds: float, clients: int, seed: int, quiet: bool
) -> tuple[Counter, list[str], list[int]]:
    """What was done, which answers were wrong, and the node's memory in bytes, sampled evenly."""
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as url:
        process = child_of(os.getpid())
        with OpenSearch(url, timeout=60) as client:
            # Small heads, so that they are sealed and merged all the time.
            settings = {"index.knn": True, "index.translog.flush_threshold_size": "512kb"}
            body = {"settings": settings, "mappings": {"properties": PROPERTIES}}
            client.indices.create(index=INDEX, body=body)
        results: mp.Queue = mp.Queue()
        until = time.monotonic() + seconds
        workers = [
            mp.Process(target=own, args=(url, i, seed * 1000 + i, until, results))
            for i in range(clients)
        ]
        workers.append(mp.Process(target=swap, args=(url, until, results)))
        [worker.start() for worker in workers]
        memory = []
        while time.monotonic() < until:
            time.sleep(min(2.0, max(until - time.monotonic(), 0.01)))
            memory.append(resident(process))
            if not quiet and len(memory) % 15 == 0:
                left = until - time.monotonic()
                print(f"{left:.0f} s left, {memory[-1] >> 20} MiB", file=sys.stderr, flush=True)
        done, wrong = Counter(), []
        for _ in workers:
            counted, said = results.get(timeout=180)
            done += counted
            wrong += said
        [worker.join() for worker in workers]
        with OpenSearch(url, timeout=60) as client:
            merges = client.indices.stats(index=INDEX)["indices"][INDEX]["total"]["merges"]
            done["merges"] = merges["total"]
        return done, wrong, memory


def third(memory: list[int], which: int) -> float:
    """The median of a third of the samples."""
    part = memory[len(memory) * which // 3 : len(memory) * (which + 1) // 3]
    return float(np.median(part))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    mp.set_start_method("spawn")
    done, wrong, memory = soak(arguments.seconds, arguments.clients, arguments.seed, quiet=False)
    growth = third(memory, 2) / third(memory, 1) - 1
    print(f"{arguments.clients} clients, {arguments.seconds:.0f} s, seed {arguments.seed}\n")
    print("| what | times |\n| --- | --: |")
    for what, times in sorted(done.items()):
        print(f"| {what} | {times} |")
    print(f"\nWrong answers: {len(wrong)}.")
    thirds = ", ".join(f"{third(memory, i) / 2**20:.0f} MiB" for i in range(3))
    print(f"Memory (RssAnon), medians of thirds: {thirds}.")
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong or growth > 0.1 else 0


if __name__ == "__main__":
    sys.exit(main())
