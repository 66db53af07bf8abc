"""The record as a picture: what the kernels reach, under what the loads and the arithmetic allow.

A point is a kernel in a form: operations for each byte that must come in, against operations a
second. An operation is one of the definition: a multiplication and an addition for each pair of
numbers of an inner product, and a subtraction for a squared distance.
"""

from collections.abc import Iterator
from math import atan2, degrees, log10
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from . import limits
from .cases import FORMATS, Case, Form
from .report import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Type, form, intensity, operations a nanosecond of ours and of the best peer (or 0).
Point = tuple[str, Form, float, float, float]
OPERATIONS = {"dot": 2, "l2": 3, "hamming": 2}
TYPES = ("f32", "f16", "bf16", "i8", "u8", "u4", "bits")
COLOURS = ("#1d4e89", "#2a9d8f", "#57a773", "#c1121f", "#e07a00", "#6a4c93", "#444444")
FORMS = (Form.ONE, Form.ROWS_L2, Form.ROWS_MEMORY, Form.IDS)
MARKERS = dict(zip(FORMS, "os^v", strict=True))
DIM = 768


def operations(case: Case) -> float:
    """Operations of one distance."""
    return OPERATIONS[case.op] * case.dim


def bytes_in(case: Case) -> float:
    """Bytes that a distance brings in: the row; from the L1 the query as well."""
    return case.row_bytes + (case.query_bytes if case.form == Form.ONE else 0)


def _points(record: Record, op: str) -> Iterator[Point]:
    for case in record.by_case:
        if case.dim != DIM or case.form not in FORMS or case.type not in TYPES:
            continue
        if case.op != ("hamming" if case.type == "bits" else op) or not (mine := record.ours(case)):
            continue
        peer = record.best_peer(case)
        work = operations(case)
        reached = work / peer.median if peer else 0.0
        yield case.type, case.form, work / bytes_in(case), work / mine.median, reached


def _compute_roofs(record: Record, op: str) -> dict[str, float]:
    """Operations a nanosecond that a type's arithmetic allows."""
    roofs: dict[str, list[float]] = {}
    for row in record.rows:
        case = row.case
        wanted = "hamming" if case.type == "bits" else op
        counts = (case.op, case.dim) == (wanted, DIM) and case.type in TYPES and case.form in FORMS
        if counts and row.variant.startswith(limits.STEP):
            roofs.setdefault(case.type, []).append(operations(case) / row.median)
    return {kind: median(each) for kind, each in roofs.items()}


def _merged(rates: dict[str, float]) -> list[tuple[str, float]]:
    """Lines that would lie on each other as one, with both names."""
    lines: list[tuple[str, float]] = []
    for name, rate in rates.items():
        short = "random rows" if "random" in name else name
        if lines and 0.93 < rate / lines[-1][1] < 1.08:
            lines[-1] = (f"{lines[-1][0]}, {short}", (lines[-1][1] + rate) / 2)
        else:
            lines.append((short, rate))
    return lines


def _angle(low: float, high: float, bottom: float, top: float) -> float:
    """How steep a load roof looks: a decade across and a decade up, in the panel's shape."""
    across, up = log10(high / low), log10(top / bottom)
    return degrees(atan2(5.9 / up, 6.7 / across))


def draw(path: Path, record: Record) -> bool:
    """Writes the PNG: inner products on the left, squared distances on the right. False, and no
    file, if nothing was measured that could be shown."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # A run of some kernels only may leave a panel empty, or both.
    shown = {op: list(_points(record, op)) for op in ("dot", "l2")}
    if not any(shown.values()):
        return False
    wanted = [op for op in shown if any(kind != "bits" for kind, *_ in shown[op])] or ["dot"]
    heights = [y for op in wanted for *_, ours, best in shown[op] for y in (ours, best) if y]
    roof = max(max(_compute_roofs(record, op).values(), default=0) for op in wanted)
    bottom, top = min(heights) / 1.8, max(roof, *heights) * 2.2
    figure, panels = pyplot.subplots(
        1, len(wanted), figsize=(7.5 * len(wanted), 7.6), sharey=True, squeeze=False
    )
    figure.set_layout_engine("constrained")
    for panel, op in zip(panels[0], wanted, strict=True):
        low = min(x for _, _, x, _, _ in shown[op]) / 1.8
        high = max(x for _, _, x, _, _ in shown[op]) * 2.2
        panel.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
        _draw_loads(panel, {level.name: level.gb_per_second for level in record.levels})
        _draw_points(panel, shown[op])
        _draw_arithmetic(panel, _compute_roofs(record, op), shown[op])
        title = {"dot": "inner product", "l2": "squared distance"}[op]
        panel.set_title(f"{title}, bits: Hamming")
        panel.set_xlabel("operations for each byte that comes in (log)")
        panel.grid(alpha=0.25, which="both")
    panels[0][0].set_ylabel("operations a nanosecond, one thread (log)")
    legend = {"loc": "outside lower center", "ncols": 12, "frameon": False, "fontsize": 9}
    figure.legend(handles=_legend(), **legend)
    cpu = record.facts["cpu"].partition(",")[0]
    figure.suptitle(f"Lanewise's kernels under their roofs, {DIM} dimensions, {cpu}")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def _draw_loads(panel: "Axes", rates: dict[str, float]) -> None:
    """What the loads allow: a slope for each cache."""
    (low, high), (bottom, top) = panel.get_xlim(), panel.get_ylim()
    for name, rate in _merged(rates):
        panel.plot([low, high], [low * rate, high * rate], color="#999999", lw=1, zorder=1)
        # Near where the line leaves the picture, at the top or at the right.
        at = min(high / 1.1, top / 1.15 / rate)
        panel.annotate(
            f"{name} {rate:.0f} GB/s",
            (at, at * rate),
            xytext=(-4, 1),
            textcoords="offset points",
            ha="right",
            va="bottom",
            rotation=_angle(low, high, bottom, top),
            rotation_mode="anchor",
            fontsize=8,
            color="#555555",
        )


def _draw_points(panel: "Axes", points: list[Point]) -> None:
    """What is reached, with a line to the best other library."""
    for kind, form, x, y, peer in points:
        # Types of equal width are set apart, around where they belong.
        group = [t for t in TYPES if FORMATS[t].row_bits == FORMATS[kind].row_bits]
        x *= 1.09 ** (group.index(kind) * 2 - len(group) + 1)
        colour = COLOURS[TYPES.index(kind)]
        style = {"marker": MARKERS[form], "color": colour, "linestyle": "none"}
        panel.plot(x, y, markersize=8, zorder=4, **style)
        if peer:
            panel.plot(x, peer, markersize=7, zorder=3, markerfacecolor="white", **style)
            panel.plot([x, x], [peer, y], color=colour, lw=0.8, alpha=0.5)


def _draw_arithmetic(panel: "Axes", roofs: dict[str, float], points: list[Point]) -> None:
    """What the arithmetic allows: a level over the points of a type, if it has any."""
    shown = {kind for kind, *_ in points}
    for name, roof in _merged({kind: roof for kind, roof in roofs.items() if kind in shown}):
        first = name.partition(",")[0]
        own = [x for kind, _, x, _, _ in points if kind == first]
        colour = COLOURS[TYPES.index(first)]
        panel.plot([min(own) / 1.3, max(own) * 1.3], [roof] * 2, color=colour, lw=2, zorder=2)
        panel.annotate(
            f"{name} arithmetic",
            (max(own) * 1.3, roof),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
        )


def _legend() -> list["Line2D"]:
    from matplotlib.lines import Line2D

    def handle(marker: str, colour: str, label: str, **style: str) -> Line2D:
        return Line2D([], [], marker=marker, linestyle="none", color=colour, label=label, **style)

    handles = [handle("o", *each) for each in zip(COLOURS, TYPES, strict=True)]
    handles += [handle(marker, "#777777", str(form)) for form, marker in MARKERS.items()]
    return [*handles, handle("o", "#777777", "best other library", markerfacecolor="white")]
