"""The page of `compare.bulk`: what was measured, and ratios of what is there."""

from .bulk import MIB, Row, page


def test_ratios_are_formed_of_what_was_measured():
    rows = [
        Row("table, load", 10, 18, 700 * MIB, 1, 0.99, 150),
        Row("hnswlib", 25, 50, 512 * MIB, 1, 0.98, 100),
        Row("table, put_many untuned", 40, 70, 900 * MIB, 9, 0.97, 400),
    ]
    text = page(rows, {"cpu": "some"})
    assert "| table, load | 10.0 | 18.0 | 700 | 1 | 0.9900 | 150 |" in text
    assert "load is 2.50 times as fast as hnswlib builds" in text
    assert "load is 4.00 times as fast as untuned writes" in text
    assert "document 003's tuning" not in text
    assert "- cpu: some" in text
