"""The page and the picture of `compare.node`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .node import Row

THEIRS = "OpenSearch"

HEAD = """# A node beside OpenSearch

`make bench-node` measures this and writes this page. `lanewise serve` and OpenSearch with its \
k-NN plugin (engine lucene) on one machine, asked by the same requests over HTTP for the 10 \
nearest: HNSW, m = 16, ef_construction = 200, one shard, no source in the answers. **Servers and \
clients share the machine's cores**: a figure is worth its ratio, not more. The servers take \
turns within each round; the other one rests. ef_search is the least at which each finds recall \
0.95 (single queries, ties count). The load generator is a program of ours that keeps its \
connections open; *client* is what it takes of a core. *Index* is from the first `_bulk` until \
the last vector can be searched, the merge into one segment is done where there is one, and the \
server rests; requests are of 500 documents from two clients. Ratios are formed inside a round; \
figures are medians over the rounds, in brackets the lowest and the highest."""


def page(
    rows: Sequence["Row"], facts: Mapping[str, str], abouts: Mapping[str, str], rounds: int
) -> str:
    """The whole page."""
    parts = [HEAD, "\n".join(f"- {name}: {fact}" for name, fact in facts.items())]
    parts[1] += f"\n- rounds: {rounds}"
    parts.append("![throughput by clients](node.png)")
    for data, merged in dict.fromkeys((row.data, row.merged) for row in rows):
        here = [row for row in rows if (row.data, row.merged) == (data, merged)]
        title = "one segment" if merged else "as it came, not merged"
        parts += [f"## {data}, {title}", abouts[data], _speeds(here), _costs(here)]
        theirs = next((row for row in here if row.server == THEIRS), None)
        for row in here:
            if theirs and row is not theirs:
                parts.append(_ratios(row, theirs))
        parts += [_gain(here)] if len(here) > 2 else []
    return "\n\n".join(parts) + "\n"


def _speeds(rows: Sequence["Row"]) -> str:
    lines = [
        "| server | clients | queries/s | P50 ms | P99 ms | server's CPU ms a query | client |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        for clients, cell in row.cells.items():
            lines.append(
                f"| {row.server} | {clients} | {median(cell.speeds):,.0f} "
                f"({min(cell.speeds):,.0f} to {max(cell.speeds):,.0f}) "
                f"| {median(cell.p50_ms):.2f} | {median(cell.p99_ms):.2f} "
                f"| {median(cell.server_cpu_ms):.3f} | {100 * median(cell.client_share):.0f} % |"
            )
    return "\n".join(lines)


def _costs(rows: Sequence["Row"]) -> str:
    lines = [
        "| server | index s | index CPU s | segments | ef_search | recall |",
        "| --- | --: | --: | --: | --: | --: |",
        *(
            f"| {row.server} | {row.seconds:.1f} | {row.cpu_seconds:.1f} | {row.segments} "
            f"| {row.ef_search} | {row.recall:.4f} |"
            for row in rows
        ),
    ]
    return "\n".join(lines)


def _ratios(ours: "Row", theirs: "Row") -> str:
    """Ours over theirs, a line for each figure that is asked about."""
    lines = [f"{ours.server} over {theirs.server}:"]
    for clients, cell in ours.cells.items():
        other = theirs.cells[clients]
        speed = _inside(cell.speeds, other.speeds)
        late = _inside(cell.p99_ms, other.p99_ms)
        lines.append(f"- {clients} clients: throughput **{speed}**, P99 {late}")
    lines.append(f"- index time {ours.seconds / theirs.seconds:.2f}")
    return "\n".join(lines)


def _gain(rows: Sequence["Row"]) -> str:
    """What the best instruction set gains over the lower one: document 001's table."""
    high, low = rows[0], rows[1]
    told = ", ".join(
        f"{clients} clients {_inside(cell.speeds, low.cells[clients].speeds)}"
        for clients, cell in high.cells.items()
    )
    build = high.cpu_seconds / low.cpu_seconds
    return f"{high.server} over {low.server}: throughput {told}; CPU to build {build:.2f}"


def _inside(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The ratio of each round: median, lowest, highest."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def draw(path: Path, rows: Sequence["Row"]) -> None:
    """Throughput by clients, a panel for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys((row.data, row.merged) for row in rows))
    names = list(dict.fromkeys(row.server for row in rows))
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 3.6), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes[0], panels, strict=True):
        for row in rows:
            if (row.data, row.merged) == panel:
                speeds = [median(cell.speeds) for cell in row.cells.values()]
                axis.plot(list(row.cells), speeds, marker="o", color=f"C{names.index(row.server)}")
        axis.set_xscale("log", base=2)
        axis.set_xticks(list(rows[0].cells), [str(each) for each in rows[0].cells])
        axis.set_ylim(bottom=0)
        axis.set_title(f"{panel[0]}, {'one segment' if panel[1] else 'not merged'}")
        axis.set_xlabel("clients")
    axes[0][0].set_ylabel("queries a second, recall 0.95")
    lines = [pyplot.Line2D([], [], color=f"C{number}") for number in range(len(names))]
    axes[0][0].legend(lines, names)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
