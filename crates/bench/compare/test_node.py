"""`compare.node`: the least breadth, what is sent, and ratios formed inside rounds."""

import json

import numpy as np
import pytest

from . import node
from .dataset import Dataset
from .node import Cell, Row, filled, least_ef
from .node_page import draw, page


@pytest.mark.parametrize("needed", [1, 10, 11, 12, 57, 999, 1000])
def test_the_least_breadth_is_found(needed):
    asked = []

    def found(ef):
        asked.append(ef)
        return 0.95 if ef >= needed else 0.9499

    assert least_ef(found) == (max(needed, 10), 0.95)
    assert len(asked) < 14


def test_a_recall_that_is_not_reached_is_told():
    assert least_ef(lambda ef: 0.5) == (node.EF_MAX, 0.5)


def test_bodies_lie_behind_their_lengths(tmp_path):
    node._write(tmp_path / "bodies", iter(["ä", "bcd"]))
    assert (tmp_path / "bodies").read_bytes() == "\2\0\0\0ä\3\0\0\0bcd".encode()


def test_documents_are_numbered_over_requests_and_bits_are_signed(monkeypatch):
    monkeypatch.setattr(node, "BULK_DOCUMENTS", 2)
    base = np.full((3, 96), 255, np.uint8)
    bulks = list(node._bulks(Dataset(base, base, "hamming")))
    lines = [json.loads(line) for bulk in bulks for line in bulk.splitlines()]
    assert [line["index"]["_id"] for line in lines[::2]] == ["0", "1", "2"]
    assert lines[1]["v"] == [-1] * 96
    pixels = Dataset(base[:, :4], base[:, :4])
    (query,) = map(json.loads, list(node._queries(pixels, 33))[:1])
    asked = query["query"]["knn"]["v"]
    assert (asked["vector"], asked["method_parameters"]) == ([255.0] * 4, {"ef_search": 33})


def test_an_empty_head_is_no_segment():
    assert filled([{"docs.count": "10"}, {"docs.count": "0"}]) == 1


def row(server, speeds, late, seconds):
    cell = Cell(speeds, late, late, late, [0.1] * len(speeds))
    return Row(server, "bits", True, seconds, seconds, 1, 20, 0.951, {8: cell})


def test_ratios_are_medians_of_rounds(tmp_path):
    rows = [
        row("lanewise", [10.0, 40.0, 90.0], [1.0, 1.0, 2.0], 5),
        row("lanewise, avx2", [5.0, 40.0, 30.0], [1.0, 1.0, 1.0], 10),
        row("OpenSearch", [10.0, 10.0, 30.0], [4.0, 2.0, 2.0], 20),
    ]
    text = page(rows, {"cpu": "some"}, {"bits": "made up"}, 3)
    assert "- 8 clients: throughput **3.00 (1.00 to 4.00)**, P99 0.50 (0.25 to 1.00)" in text
    assert "- index time 0.25" in text
    assert "lanewise over lanewise, avx2: throughput 8 clients 2.00 (1.00 to 3.00)" in text
    assert "CPU to build 0.50" in text
    assert "- cpu: some" in text
    draw(tmp_path / "node.png", rows)
    assert (tmp_path / "node.png").read_bytes().startswith(b"\x89PNG")
