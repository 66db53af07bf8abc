"""The record as a picture: speed over recall, one panel for each thread count."""

from pathlib import Path
from statistics import median

from .adapters import OURS
from .curves import pareto
from .driver import Row

RECALL_TICKS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
# The scale stretches towards recall 1, which itself lies at infinity.
RECALL_MAX = 0.9995
OUR_COLOURS = ("#c1121f", "#e07a00")
PEER_COLOURS = (
    "#1d4e89",
    "#2a9d8f",
    "#57a773",
    "#7b8c2a",
    "#6a4c93",
    "#9d6bb5",
    "#c77dba",
)
MARKERS = "osD^vP<>X"


def draw(path: Path, title: str, rows: list[Row]) -> None:
    """Writes a PNG of the rows' Pareto fronts (medians over the rounds)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        NullFormatter,
        NullLocator,
    )

    counts = sorted({count for row in rows for count in row.searches})
    figure, panels = pyplot.subplots(
        1,
        len(counts),
        figsize=(6.2 * len(counts), 5.6),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    peer_colours, our_colours = iter(PEER_COLOURS * 2), iter(OUR_COLOURS)
    styles = {
        row.library: {
            "color": next(our_colours if row.library in OURS else peer_colours),
            "linewidth": 2.6 if row.library in OURS else 1.4,
            "zorder": 3 if row.library in OURS else 2,
            "marker": marker,
            "markersize": 5,
        }
        for row, marker in zip(rows, MARKERS * 2, strict=False)
    }
    for panel, count in zip(panels[0], counts, strict=True):
        for row in rows:
            points = [
                (
                    min(row.recall(ef, count), RECALL_MAX),
                    median(each["qps"] for each in readings),
                )
                for ef, readings in row.searches[count].items()
            ]
            front = zip(*pareto(points), strict=True)
            panel.plot(*front, label=row.library, **styles[row.library])
        panel.set(
            xscale="logit",
            yscale="log",
            xlabel="recall@10",
            title="1 thread" if count == 1 else f"{count} threads",
        )
        panel.xaxis.set_major_locator(FixedLocator(RECALL_TICKS))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("queries a second (log)")
    figure.suptitle(title)
    figure.legend(
        *panels[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=5,
        frameon=False,
    )
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
