"""The page of `compare.levels`: medians, and gains formed inside rounds."""

from .levels import Row, page


def test_gains_are_medians_of_ratios_inside_rounds():
    low = Row(
        "low",
        {False: [10, 20, 40], True: [100, 100, 100]},
        {False: 0.9, True: 1},
        {False: 2, True: 4},
    )
    high = Row(
        "high",
        {False: [15, 30, 80], True: [90, 120, 110]},
        {False: 0.9, True: 1},
        {False: 1, True: 5},
    )
    text = page([low, high], {"cpu": "some"}, 8, 1000)
    assert "| low | 20 | 0.9000 | 100 | 1.0000 | 500 | 250 |" in text
    assert "| high | 30 | 0.9000 | 110 | 1.0000 | 1,000 | 200 |" in text
    assert "| high over low | +50 % |  | +10 % |  | +100 % | -20 % |" in text
    assert "- cpu: some" in text
