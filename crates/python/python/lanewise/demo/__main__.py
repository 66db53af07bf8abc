"""The program `python -m lanewise.demo`. Results go to stdout, progress to stderr."""

import argparse
import contextlib
import os
import shutil
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import lanewise

from .errors import DemoError

try:
    import numpy as np

    from . import embed, fetch, measure, text
    from .model import F32, TOKENS_MAX, Model
except ModuleNotFoundError as missing:
    sys.exit(f"lanewise.demo needs {missing.name}: pip install 'lanewise[demo]'")

INDEXED_LEN = 20_000
HELD_OUT_LEN = 1_000
SEED = 1
K = 10
EF_SEARCH = (16, 64, 128)
# Their best answers share hardly a word with them.
QUESTIONS = (
    "a doctor who looks after children",
    "the feeling after losing somebody you loved",
    "a place where the dead are laid to rest",
    "having no money at all",
    "a place to pray",
    "the person in charge of a ship",
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is searched: entries, their vectors and those of the held-out queries."""

    model: Model
    synsets: list[text.Synset]
    vectors: F32
    queries: F32
    index_path: Path


def main() -> int:
    """Runs the demo; the answer is the exit status."""
    options = _options()
    try:
        corpus = _prepare(options.cache, options.all)
        if options.query:
            index = _open(corpus) or _build(corpus)[0]
            _answer(index, corpus, options.query, K)
        else:
            _tour(corpus)
        return 0
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; what is finished is in the cache", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has what it wanted. Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lanewise.demo", description="Semantic search over WordNet, measured."
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(".cache"), help="folder for all files (%(default)s)"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        default=os.environ.get("DEMO_ALL", "0") not in ("", "0"),
        help=f"index all of WordNet instead of {INDEXED_LEN:,} entries (also DEMO_ALL=1)",
    )
    parser.add_argument(
        "--query",
        default=os.environ.get("QUERY", "").strip(),
        help="answer this and leave (also QUERY=...)",
    )
    return parser.parse_args()


def _prepare(folder: Path, everything: bool) -> Corpus:
    """Text, model and vectors, each from the cache where it is there."""
    found = fetch.wordnet(folder)
    indexed, held_out = text.sample(
        found.synsets, None if everything else INDEXED_LEN, HELD_OUT_LEN, SEED
    )
    _say("text", f"WordNet {found.version}, {len(found.synsets):,} entries, from {found.source}")
    which = "all the others" if everything else "those with most relations"
    _say("sample", f"{len(indexed):,} to index ({which}), {len(held_out):,} held out as queries")
    files = fetch.model(folder)
    model = Model(files["model.safetensors"], files["tokenizer.json"])
    _say("model", f"all-MiniLM-L6-v2, {model.encoder.dim} dimensions, f32, NumPy")

    texts = [synset.text for synset in indexed + held_out]
    name = embed.key(texts, f"{sorted(fetch.MODEL_FILES.items())} {TOKENS_MAX}")
    vectors = embed.cached(folder, name, (len(texts), model.encoder.dim))
    if vectors is None:
        start = time.perf_counter()
        vectors = embed.embed(model.encoder, model.tokens(texts), folder, name)
        spent = time.perf_counter() - start
        _say("vectors", f"{len(texts):,} ready after {spent:.0f} s on {embed.threads_len()} cores")
    else:
        _say("vectors", f"{len(texts):,} from the cache")
    return Corpus(
        model,
        indexed,
        vectors[: len(indexed)],
        vectors[len(indexed) :],
        folder / f"index-{name}.lanewise",
    )


def _build(corpus: Corpus) -> tuple[lanewise.Index, float]:
    """Builds and saves the index; also the seconds that building took."""
    index = _index(corpus, "hnsw")
    start = time.perf_counter()
    index.add(corpus.vectors, progress=True)
    spent = time.perf_counter() - start
    try:
        index.save(corpus.index_path)
    except (lanewise.Error, OSError) as error:
        raise DemoError(f"cannot save {corpus.index_path}: {error}") from error
    return index, spent


def _index(corpus: Corpus, kind: Literal["hnsw", "flat"]) -> lanewise.Index:
    return lanewise.Index(corpus.vectors.shape[1], metric="cosine", kind=kind, seed=SEED)


def _open(corpus: Corpus) -> lanewise.Index | None:
    """The saved index, or None where there is none or it cannot be opened (told on stderr)."""
    if not corpus.index_path.exists():
        return None
    try:
        return lanewise.Index.open(corpus.index_path)
    except (lanewise.Error, OSError) as error:
        print(f"index     not reopened: {error}", file=sys.stderr)
        return None


def _tour(corpus: Corpus) -> None:
    """Build, six questions, figures, and the prompt where there is a terminal."""
    index, seconds = _build(corpus)
    info = index.info()
    _say("index", f"HNSW, m=16, ef_construction=200, cosine, f32; instruction set {info['isa']}")
    _say("build", f"{seconds:.1f} s, {len(corpus.vectors) / seconds:,.0f} vectors/s")
    _say(
        "memory",
        f"{info['bytes_per_vector']:,.0f} bytes per vector, "
        f"of which {4 * corpus.vectors.shape[1]:,} are the vector",
    )
    index = _reopened(index, corpus)
    print("\nSix questions, answered by meaning")
    for question in QUESTIONS:
        _answer(index, corpus, question, 3)
    _figures(index, corpus)
    _prompt(index, corpus)


def _reopened(index: lanewise.Index, corpus: Corpus) -> lanewise.Index:
    """The saved index, opened; DemoError if it answers otherwise than the built one."""
    start = time.perf_counter()
    reopened = _open(corpus)
    spent_ms = 1e3 * (time.perf_counter() - start)
    if reopened is None:
        raise DemoError(f"{corpus.index_path} was just saved and cannot be opened")
    ids, distances = index.search(corpus.queries, K)
    ids_again, distances_again = reopened.search(corpus.queries, K)
    if not (np.array_equal(ids, ids_again) and np.array_equal(distances, distances_again)):
        raise DemoError(f"{corpus.index_path} answers otherwise than the index that was saved")
    _say("reopened", f"in {spent_ms:.1f} ms from {corpus.index_path}; same answers")
    return reopened


def _answer(index: lanewise.Index, corpus: Corpus, question: str, k: int) -> None:
    """Prints the `k` entries nearest to `question`, each with the cosine of the angle to it."""
    # A terminal can hand over bytes that are no text; the tokenizer takes text only.
    vector = corpus.model.embed(question.encode(errors="replace").decode())
    ids, distances = index.search(vector, k)
    print(f"\n  {question}")
    width = max(shutil.get_terminal_size().columns, 60)
    for i, distance in zip(ids[0], distances[0], strict=True):
        synset = corpus.synsets[i]
        words = textwrap.shorten(", ".join(synset.words), 30, placeholder=" ...")
        line = f"    {1 - distance:5.2f}  {words:<30}  {synset.definition}"
        print(line if len(line) <= width else f"{line[: width - 3]}...")


def _figures(index: lanewise.Index, corpus: Corpus) -> None:
    """Prints recall and speed beside exact search, with the held-out entries as queries."""
    threads = embed.threads_len()
    flat = _index(corpus, "flat")
    flat.add(corpus.vectors, progress=False)
    exact, _ = flat.search(corpus.queries, K)
    all_threads = f"{threads} threads" if threads > 1 else "1 thread"
    print(
        f"\nFigures: {len(corpus.queries):,} held-out entries as queries, {K} neighbours each\n"
        f"\n                        queries a second, batch    one query, one thread"
        f"\n  search     recall@{K}    1 thread  {all_threads:>10}     P50 ms     P99 ms"
    )
    for ef in EF_SEARCH:
        row = measure.figures(index, corpus.queries, exact, threads, ef)
        _row(f"ef={ef}", row)
    # Exact search takes the same time for every query: a few of them tell.
    _row("exact", measure.figures(flat, corpus.queries[:100], exact[:100], threads))


def _row(name: str, row: measure.Figures) -> None:
    print(
        f"  {name:<10} {row.recall:>9.4f}  {row.per_second_one:>10,.0f}  "
        f"{row.per_second_all:>10,.0f}  {row.p50_ms:>9.3f}  {row.p99_ms:>9.3f}"
    )


def _prompt(index: lanewise.Index, corpus: Corpus) -> None:
    """Answers what the user types, until the end of input; nothing without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (gives input() line editing)
    print("\nAsk anything; Ctrl-D leaves.")
    while True:
        try:
            question = input("\n> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if question:
            _answer(index, corpus, question, K)


def _say(what: str, result: str) -> None:
    print(f"{what:<9} {result}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
