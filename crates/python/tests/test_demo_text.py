"""WordNet's data files: what is read, what is skipped, and the split into index and queries."""

import pytest
from lanewise.demo import text
from lanewise.demo.errors import DemoError

LICENCE = "  1 This software and database is provided | by WordNet 3.1 Copyright\n"
CAR = (
    "02961779 06 n 05 car 0 auto 0 automobile 0 machine 6 motorcar 0 002 @ 03796768 n 0000 "
    "~ 02704283 n 0000 | a motor vehicle with four wheels; usually propelled by an internal "
    'combustion engine; "he needs a car to get to work"  \n'
)
GALORE = (
    "00013887 00 s 01 galore(ip) 0 001 & 00013160 a 0000 "
    '| existing in abundance; "whiskey galore"\n'
)
HOT_DOG = "07697537 13 n 0b " + "".join(f"hot_dog{i:x} 0 " for i in range(11)) + "000 | a sausage\n"


def files(noun: str) -> dict[str, bytes]:
    other = {part: b"" for part in text.PARTS}
    return {f"data.{part}": blob for part, blob in (other | {"noun": noun.encode()}).items()}


def test_a_line_gives_words_definition_and_relations() -> None:
    synset = text.parse_line(CAR)
    assert synset is not None
    assert synset.words == ("car", "auto", "automobile", "machine", "motorcar")
    assert synset.definition == (
        "a motor vehicle with four wheels; usually propelled by an internal combustion engine"
    )
    assert synset.relations_len == 2
    assert synset.text.startswith("car, auto, automobile, machine, motorcar: a motor vehicle")


def test_markers_underscores_and_hexadecimal_counts() -> None:
    galore, hot_dog = text.parse_line(GALORE), text.parse_line(HOT_DOG)
    assert galore is not None
    assert galore.words == ("galore",)
    assert galore.definition == "existing in abundance"
    assert hot_dog is not None
    assert len(hot_dog.words) == 11
    assert hot_dog.words[10] == "hot doga"


@pytest.mark.parametrize(
    ("gloss", "definition"),
    [
        ('the "call of duty" kind; "he answered"', 'the "call of duty" kind'),
        ('restricted: "only this"', "restricted"),
        ("ends in a semicolon; ", "ends in a semicolon"),
        ("with | a bar", "with | a bar"),
    ],
)
def test_examples_go_and_quoted_words_stay(gloss: str, definition: str) -> None:
    synset = text.parse_line(f"00000001 03 n 01 x 0 000 | {gloss}\r\n")
    assert synset is not None
    assert synset.definition == definition


@pytest.mark.parametrize(
    "line",
    [
        CAR.partition(" | ")[0],
        "02961779 06 n",
        "00000001 03 n zz x 0 000 | a gloss",
        "00000001 03 n 00 000 | no words",
        "00000001 03 n 09 x 0 000 | fewer words than it says",
        "00000001 03 n 01 x 0 000 | ",
        '00000001 03 n 01 x 0 000 | ; "only an example"',
        "\x00\xff | \x00",
    ],
)
def test_other_lines_are_counted_and_skipped(line: str) -> None:
    assert text.parse([LICENCE, line, "\n", CAR]) == ([text.parse_line(CAR)], 1)


def test_read_takes_equal_texts_once_and_knows_the_version() -> None:
    all_files = files(LICENCE + CAR + GALORE + CAR)
    assert [s.words[0] for s in text.read(all_files, synsets_min=2)] == ["car", "galore"]
    assert text.version(all_files) == "3.1"
    assert text.version(files(CAR)) == "3.x"


def test_read_refuses_cut_and_missing_files() -> None:
    with pytest.raises(DemoError, match=r"1 synsets .* cut or of another kind"):
        text.read(files(CAR))
    lacking = files(CAR)
    del lacking["data.verb"]
    with pytest.raises(DemoError, match=r"data\.verb is missing"):
        text.read(lacking, synsets_min=1)


def synsets(count: int) -> list[text.Synset]:
    return [text.Synset((f"w{i}",), "d", i % 7) for i in range(count)]


def test_sample_is_disjoint_reproducible_and_takes_the_most_related() -> None:
    all_synsets = synsets(700)
    indexed, held_out = text.sample(all_synsets, 250, 30, seed=3)
    assert (len(indexed), len(held_out)) == (250, 30)
    assert len(set(indexed) | set(held_out)) == 280
    # 100 synsets have each number of relations: 280 are the 6s, the 5s and 80 of the 4s.
    relations = sorted(s.relations_len for s in indexed + held_out)
    assert relations == [4] * 80 + [5] * 100 + [6] * 100
    assert {s.relations_len for s in held_out} == {4, 5, 6}, "held out at random"
    assert text.sample(all_synsets, 250, 30, seed=3) == (indexed, held_out)
    assert text.sample(all_synsets, 250, 30, seed=4) != (indexed, held_out)


def test_sample_of_all_leaves_none_out() -> None:
    indexed, held_out = text.sample(synsets(50), None, 10, seed=0)
    assert (len(indexed), len(held_out)) == (40, 10)
    assert set(indexed) | set(held_out) == set(synsets(50))


@pytest.mark.parametrize(("indexed_len", "held_out_len"), [(41, 10), (0, 10), (None, 50)])
def test_sample_refuses_more_than_there_is(indexed_len: int | None, held_out_len: int) -> None:
    with pytest.raises(DemoError, match="the text has 50"):
        text.sample(synsets(50), indexed_len, held_out_len, seed=0)
