"""The record as a picture: what the kernels reach, under what the loads and the arithmetic allow.

A point is a kernel in a form: operations for each byte that must come in, against operations a
second. An operation is one of the definition: a multiplication and an addition for each pair of
numbers of an inner product, and a subtraction for a squared distance.
"""

from collections.abc import Iterator
from math import atan2, degrees, log10
from pathlib import Path
from statistics import median

from . import limits
from .cases import FORMATS, Case, Form
from .report import Record

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


def _points(record: Record, op: str) -> Iterator[tuple[str, Form, float, float, float]]:
    """Type, form, intensity, operations a nanosecond of ours and of the best peer (or 0)."""
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


def draw(path: Path, record: Record) -> bool:
    """Writes the PNG: inner products on the left, squared distances on the right. False, and no
    file, if nothing was measured that could be shown."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    def angle(low: float, high: float, bottom: float, top: float) -> float:
        """How steep a load roof looks: a decade across and a decade up, in the panel's shape."""
        across, up = log10(high / low), log10(top / bottom)
        return degrees(atan2(5.9 / up, 6.7 / across))

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
    panels = panels[0]
    for panel, op in zip(panels, wanted, strict=True):
        points = shown[op]
        # Types of equal width are set apart, around where they belong.
        columns = sorted({(x, kind) for kind, _, x, _, _ in points})
        low = min(x for x, _ in columns) / 1.8
        high = max(x for x, _ in columns) * 2.2
        roofs = _compute_roofs(record, op)
        for name, rate in _merged({level.name: level.gb_per_second for level in record.levels}):
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
                rotation=angle(low, high, bottom, top),
                rotation_mode="anchor",
                fontsize=8,
                color="#555555",
            )
        for kind, colour in zip(TYPES, COLOURS, strict=True):
            own = [(form, x, y, peer) for k, form, x, y, peer in points if k == kind]
            if not own:
                continue
            group = [t for t in TYPES if FORMATS[t].row_bits == FORMATS[kind].row_bits]
            shift = 1.09 ** (group.index(kind) * 2 - len(group) + 1)
            for form, x, y, peer in own:
                style = {"marker": MARKERS[form], "color": colour, "linestyle": "none"}
                panel.plot(x * shift, y, markersize=8, zorder=4, **style)
                if peer:
                    panel.plot(
                        x * shift, peer, markersize=7, zorder=3, markerfacecolor="white", **style
                    )
                    panel.plot([x * shift] * 2, [peer, y], color=colour, lw=0.8, alpha=0.5)
        for name, roof in _merged(roofs):
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
        panel.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
        title = {"dot": "inner product", "l2": "squared distance"}[op]
        panel.set_title(f"{title}, bits: Hamming")
        panel.set_xlabel("operations for each byte that comes in (log)")
        panel.grid(alpha=0.25, which="both")
    panels[0].set_ylabel("operations a nanosecond, one thread (log)")
    handles = [
        Line2D([], [], marker="o", linestyle="none", color=colour, label=kind)
        for kind, colour in zip(TYPES, COLOURS, strict=True)
    ]
    handles += [
        Line2D([], [], marker=marker, linestyle="none", color="#777777", label=str(form))
        for form, marker in MARKERS.items()
    ]
    peer_style = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
    handles.append(Line2D([], [], color="#777777", label="best other library", **peer_style))
    figure.legend(handles=handles, loc="outside lower center", ncols=12, frameon=False, fontsize=9)
    cpu = record.facts["cpu"].partition(",")[0]
    figure.suptitle(f"Lanewise's kernels under their roofs, {DIM} dimensions, {cpu}")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
