"""Text of the demo: the synsets of WordNet 3.x and a sample of them.

A line of a data file (wndb(5WN)) reads

    offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt ... | gloss

with `w_cnt` in hexadecimal, `p_cnt` (relations to other synsets) in decimal, blanks in
words written as underscores, and the licence on lines that start with two blanks. Files
come from outside: a line that does not read like this is skipped and counted.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .errors import DemoError

PARTS = ("noun", "verb", "adj", "adv")

# WordNet 3.0 has 117,659 synsets and 3.1 has 117,791; a download that was cut has fewer.
SYNSETS_MIN = 100_000

# `a motor vehicle; "he needs a car to get to work"`: the gloss is a definition, then examples.
_EXAMPLES = re.compile(r'\s*[;:]\s*"')
# An adjective may carry its position: `galore(ip)`.
_POSITION = re.compile(r"\((?:a|p|ip)\)$")


@dataclass(frozen=True, slots=True)
class Synset:
    """One meaning: the words that share it, what they mean, and how many relations to
    other meanings WordNet lists."""

    words: tuple[str, ...]
    definition: str
    relations_len: int

    @property
    def text(self) -> str:
        """What is embedded. The words help short queries; the example sentences are
        left out, since they tell of a situation and not of the meaning."""
        return f"{', '.join(self.words)}: {self.definition}"


def parse_line(line: str) -> Synset | None:
    """The synset on a line of a data file, or None where the line holds none."""
    head, bar, gloss = line.partition(" | ")
    fields = head.split()
    try:
        words_len = int(fields[3], 16)
        words = fields[4 : 4 + 2 * words_len : 2]
        relations_len = int(fields[4 + 2 * words_len])
    except (ValueError, IndexError):
        return None
    definition = _EXAMPLES.split(gloss, maxsplit=1)[0].strip(" ;\r\n")
    if not bar or not words or relations_len < 0 or not definition:
        return None
    words = [_POSITION.sub("", word).replace("_", " ") for word in words]
    return Synset(tuple(words), definition, relations_len)


def parse(lines: Iterable[str]) -> tuple[list[Synset], int]:
    """Synsets of a data file in its order, and how many lines could not be read."""
    synsets: list[Synset] = []
    unread = 0
    for line in lines:
        if line.startswith("  ") or not line.strip():
            continue
        synset = parse_line(line)
        if synset is None:
            unread += 1
        else:
            synsets.append(synset)
    return synsets, unread


def read(files: Mapping[str, bytes], synsets_min: int = SYNSETS_MIN) -> list[Synset]:
    """All distinct synsets of the files `data.noun`, `data.verb`, `data.adj`, `data.adv`.

    Synsets with equal text (some twenty) are taken once: equal vectors would make the
    ten nearest neighbours, and so recall, ambiguous.

    Raises DemoError where a file is missing or the four hold fewer than `synsets_min`.
    """
    distinct: dict[str, Synset] = {}
    unread = 0
    for part in PARTS:
        blob = files.get(f"data.{part}")
        if blob is None:
            raise DemoError(f"data.{part} is missing")
        synsets, unread_here = parse(blob.decode(errors="replace").split("\n"))
        unread += unread_here
        for synset in synsets:
            distinct.setdefault(synset.text, synset)
    if len(distinct) < synsets_min:
        raise DemoError(
            f"it has {len(distinct):,} synsets ({unread:,} lines could not be read) and "
            f"WordNet 3.x more than {synsets_min:,}: its files are cut or of another kind"
        )
    return list(distinct.values())


def version(files: Mapping[str, bytes]) -> str:
    """WordNet's version as its licence text has it, such as `3.0`, or `3.x` where it is silent."""
    found = re.search(rb"WordNet (\d\.\d)", files["data.noun"][:2000])
    return found.group(1).decode() if found else "3.x"


def sample(
    synsets: list[Synset], indexed_len: int | None, held_out_len: int, seed: int
) -> tuple[list[Synset], list[Synset]]:
    """Splits synsets into those to index and those to ask with, both in seeded order.

    `indexed_len` None takes all. Otherwise the synsets with the most relations are
    taken (`dog`, not `Genus Nyctereutes`): few enough to embed quickly, they still hold
    what people ask for. The `held_out_len` to ask with are a random part of what is
    taken, and none of them is indexed. The same synsets and seed give the same split on
    every machine.
    """
    wanted_len = len(synsets) if indexed_len is None else held_out_len + indexed_len
    if not held_out_len < wanted_len <= len(synsets):
        raise DemoError(
            f"asked for {wanted_len:,} synsets of which {held_out_len:,} are to ask with, "
            f"but the text has {len(synsets):,}: ask for fewer"
        )
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(synsets))
    relations = np.array([synsets[i].relations_len for i in order])
    # Positions in `order`, most relations first, ties as they came; sorted back, the order
    # is the seeded one again.
    kept = order[np.sort(np.argsort(-relations, kind="stable")[:wanted_len])]
    chosen = [synsets[i] for i in kept]
    return chosen[held_out_len:], chosen[:held_out_len]
