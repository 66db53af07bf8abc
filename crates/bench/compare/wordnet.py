"""The demo's sentence embeddings as a data set: WordNet's glosses through MiniLM-L6."""

from pathlib import Path

import numpy as np

from .errors import BenchError

SEED = 1


def vectors(cache: Path, base_len: int | None, queries_len: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (n, 384) of glosses, and those of `queries_len` held-out ones.

    `base_len` None takes all 117,000, which are embedded once (minutes, progress on
    stderr, resumable) and kept in `cache`; the fewer are the first of the same order.
    """
    try:
        from lanewise.demo import embed, fetch, text
        from lanewise.demo.errors import DemoError
        from lanewise.demo.model import TOKENS_MAX, Model
    except ModuleNotFoundError as error:
        raise BenchError(f"wordnet needs {error.name}: pip install 'lanewise[demo]'") from error
    try:
        indexed, held_out = text.sample(fetch.wordnet(cache).synsets, None, queries_len, SEED)
        texts = [synset.text for synset in held_out + indexed[:base_len]]
        files = fetch.model(cache)
        model = Model(files["model.safetensors"], files["tokenizer.json"])
        name = embed.key(texts, f"{sorted(fetch.MODEL_FILES.items())} {TOKENS_MAX}")
        found = embed.cached(cache, name, (len(texts), model.encoder.dim))
        if found is None:
            found = embed.embed(model.encoder, model.tokens(texts), cache, name)
    except DemoError as error:
        raise BenchError(f"wordnet: {error}") from error
    return found[queries_len:], found[:queries_len]
