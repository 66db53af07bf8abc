"""The figures that `lanewise sim` wrote, as pictures: `python -m sim FOLDER`.

One PNG for each figure, and a page.

Every picture says "simulated" and what was asked; bars and bands are 95 % intervals.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

COLOURS = {"V0": "#444444", "V1": "#1d4e89", "V2": "#c1121f"}
KINDS = {"hnsw": "HNSW", "ivf": "IVF"}

Rows = list[dict[str, str]]


def read(path: Path) -> tuple[str, Rows]:
    """The note in the first line, and the rows."""
    with path.open(encoding="utf-8", newline="") as file:
        note = file.readline().removeprefix("# ").strip()
        return note, list(csv.DictReader(file))


def grouped(rows: Rows, *columns: str) -> dict[tuple[str, ...], Rows]:
    """Rows with equal values in these columns, in order."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return dict(groups)


def numbers(rows: Rows, column: str) -> list[float]:
    return [float(row[column] or "nan") for row in rows]


def scaling(panel, rows: Rows) -> None:
    for (version,), of in grouped(rows, "version").items():
        x = numbers(of, "chiplets")
        y, half = numbers(of, "ratio"), numbers(of, "half")
        panel.errorbar(
            x, y, yerr=half, label=version, color=COLOURS[version], marker="o", capsize=2
        )
    one = next(row for row in rows if row["version"] == "V0" and row["chiplets"] == "1")
    most = max(numbers(rows, "chiplets"))
    ideal = [float(one["ratio"]), float(one["ratio"]) * most]
    panel.plot([1, most], ideal, color="#999999", linestyle=":", label="V0 on one, times chiplets")
    panel.set(xlabel="chiplets", ylabel="throughput over V0 on one")


def bars(panel, rows: Rows, label: str, value: str, ylabel: str) -> None:
    labels = list(dict.fromkeys(row[label] for row in rows))
    groups = grouped(rows, "version")
    width = 0.8 / len(groups)
    for i, ((version,), of) in enumerate(groups.items()):
        x = [labels.index(row[label]) + (i - (len(groups) - 1) / 2) * width for row in of]
        y, half = numbers(of, value), numbers(of, "half")
        panel.bar(x, y, width, yerr=half, label=version, color=COLOURS[version])
    panel.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize="x-small")
    panel.set(ylabel=ylabel)


def curves(panel, rows: Rows, by: str, x: str, y: str, xlabel: str, ylabel: str) -> None:
    for (name,), of in grouped(rows, by).items():
        colour = {"color": COLOURS[name]} if name in COLOURS else {}
        panel.plot(numbers(of, x), numbers(of, y), label=name, linewidth=1.2, **colour)
    panel.set(xlabel=xlabel, ylabel=ylabel)


def timeline(panel, rows: Rows) -> None:
    remaps = [row for row in rows if row["version"] == "remap"]
    rest = [row for row in rows if row["version"] != "remap"]
    curves(
        panel,
        rest,
        "version",
        "share_of_run",
        "ratio",
        "share of the run",
        "latency over V1's mean",
    )
    for row in remaps:
        panel.axvline(float(row["share_of_run"]), color="#cccccc", linewidth=0.7, zorder=0)


def ranked(panel, rows: Rows, value: str, ylabel: str) -> None:
    panel.plot(numbers(rows, "share"), numbers(rows, value), color=COLOURS["V1"])
    panel.set(yscale="log", xlabel="table or list by rank (share)", ylabel=ylabel)


def cells(panel, rows: Rows) -> None:
    y = range(len(rows))
    for base in ("v1", "v0"):
        x, half = numbers(rows, f"v2_over_{base}"), numbers(rows, f"half_{base}")
        colour = COLOURS[base.upper()]
        panel.errorbar(x, y, xerr=half, fmt="o", label=f"V2 over {base.upper()}", color=colour)
    panel.axvline(1, color="#999999", linewidth=0.8)
    panel.set_yticks(y, [row["cell"] for row in rows])
    panel.invert_yaxis()
    panel.set(xlabel="throughput ratio (log)", xscale="log")


DRAW = {
    "figure-05": ("Scaling of V0", scaling),
    "figure-06-cdf": (
        "Accesses of nodes and lists",
        lambda p, r: curves(
            p,
            r,
            "table",
            "share_of_parts",
            "share_of_accesses",
            "share of nodes or lists",
            "share of accesses",
        ),
    ),
    "figure-06-traffic": ("Traffic", lambda p, r: ranked(p, r, "megabytes", "MB")),
    "figure-07": (
        "Traffic over windows",
        lambda p, r: curves(p, r, "table", "window", "share", "window", "share of the traffic"),
    ),
    "figure-08": (
        "Search time",
        lambda p, r: ranked(p, r, "relative_time", "time over the median"),
    ),
    "figure-14": ("Saturated throughput, HNSW", scaling),
    "figure-15": ("Saturated throughput, IVF", scaling),
    "figure-16": ("P50", lambda p, r: bars(p, r, "table", "ratio", "P50 over V0's")),
    "figure-17": ("P999", lambda p, r: bars(p, r, "table", "ratio", "P999 over V0's P50")),
    "figure-18": ("Misses", lambda p, r: bars(p, r, "chiplet", "miss_ratio", "miss ratio")),
    "figure-19": ("Stalls and steals", lambda p, r: bars(p, r, "measure", "value", "share")),
    "figure-20": ("Response time, bursts, remaps as lines", timeline),
    "sweep": ("What the model assumes, changed", cells),
}


def draw(folder: Path, name: str) -> str | None:
    """Writes FOLDER/NAME.png; the note of its data. `None` if there are none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    path = folder / f"{name}.csv"
    if not path.exists():
        return None
    note, rows = read(path)
    if not rows:
        return None
    title, panel_of = DRAW[name]
    by = [column for column in ("machine", "kind") if column in rows[0]]
    groups = grouped(rows, *by)
    figure, panels = pyplot.subplots(
        1, len(groups), figsize=(6.2 * len(groups), 4.6), squeeze=False, layout="constrained"
    )
    for panel, (key, of) in zip(panels[0], groups.items(), strict=True):
        panel_of(panel, of)
        panel.set_title(", ".join(KINDS.get(part, part) for part in key))
        panel.grid(alpha=0.3)
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize="x-small", frameon=False)
    figure.suptitle(f"{title} (simulated)\n{note}", fontsize="small")
    figure.savefig(path.with_suffix(".png"), dpi=100)
    pyplot.close(figure)
    return note


def sweep_table(rows: Rows) -> str:
    """The cells in which V2 loses, or may."""
    lost = [row for row in rows if row["loses"] != "no"]
    head = f"V2 is ahead of V0 and V1 in {len(rows) - len(lost)} of {len(rows)} cells."
    if not lost:
        return head
    lines = ["| kind | cell | V2 over V1 | V2 over V0 | loses |", "|---|---|--:|--:|---|"]
    for row in lost:
        v1 = f"{float(row['v2_over_v1']):.2f} ± {float(row['half_v1'] or 'nan'):.2f}"
        v0 = f"{float(row['v2_over_v0']):.2f} ± {float(row['half_v0'] or 'nan'):.2f}"
        lines.append(f"| {KINDS[row['kind']]} | {row['cell']} | {v1} | {v0} | {row['loses']} |")
    return head + "\n\n" + "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sim", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what `lanewise sim --out` wrote")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        parser.error(f"folder: {folder} is no folder; run `lanewise sim --out {folder}` first")
    parts = ["# Simulated figures of document 004"]
    for name, (title, _) in DRAW.items():
        if (note := draw(folder, name)) is None:
            continue
        if len(parts) == 1:
            parts.append(note[:1].upper() + note[1:] + ". Ratios, 95 % intervals over the seeds.")
        parts += [f"## {title}", f"![{title}, simulated]({name}.png)"]
        if name == "sweep":
            parts.append(sweep_table(read(folder / "sweep.csv")[1]))
    if len(parts) == 1:
        parser.error(f"folder: {folder} has no figures; run `lanewise sim --out {folder}` first")
    (folder / "page.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


main()
