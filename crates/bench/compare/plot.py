"""A record as a picture: speed over recall, one panel for each thread count."""

from pathlib import Path

from .adapters import is_ours
from .curves import pareto
from .record import Record

RECALL_TICKS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
# The scale stretches towards recall 1, which itself lies at infinity; below is nobody's aim.
RECALL_MIN, RECALL_MAX = 0.75, 0.9995
OUR_COLOUR = "#c1121f"
PEER_COLOURS = {
    "faiss": "#1d4e89",
    "hnswlib": "#444444",
    "usearch": "#2a9d8f",
    "svs": "#7b8c2a",
    "scann": "#6a4c93",
    "ngt": "#b5838d",
    "vsag": "#e09f3e",
}
MARKERS = "osD^vP<>X*ph"


def draw(path: Path, record: Record) -> None:
    """Writes a PNG of the rows' Pareto fronts (medians over the rounds).

    A colour for each package, a marker for each of its indexes; ours are the thick ones.
    """
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

    counts = record.plan["threads"]
    figure, panels = pyplot.subplots(
        1,
        len(counts),
        figsize=(6.6 * len(counts), 7.2),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    seen: dict[str, int] = {}
    for row in record.done:
        package = row.library.split("-")[0]
        number = seen[package] = seen.get(package, -1) + 1
        ours = is_ours(row.library)
        for panel, count in zip(panels[0], counts, strict=True):
            front = [
                (min(recall, RECALL_MAX), qps)
                for recall, qps in pareto(list(row.points(count).values()))
                if recall >= RECALL_MIN
            ]
            panel.plot(
                *(zip(*front, strict=True) if front else ([], [])),
                label=row.library,
                color=OUR_COLOUR if ours else PEER_COLOURS.get(package, "#999999"),
                linestyle=("-", "--", "-.", ":")[number // 3 % 4],
                linewidth=2.6 if ours else 1.1,
                zorder=3 if ours else 2,
                marker=MARKERS[number % len(MARKERS)],
                markersize=5 if ours else 4,
            )
    for panel, count in zip(panels[0], counts, strict=True):
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
    figure.suptitle(f"{record.name}, {record.facts['cpu']}")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=5,
        frameon=False,
        fontsize="small",
    )
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
