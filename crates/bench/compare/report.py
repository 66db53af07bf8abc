"""The page: best against best over all data sets, then each data set's tables and picture."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from .adapters import is_ours
from .curves import TARGETS, Summary, ratio, summary
from .record import Record, Row

DASH = "—"

HEAD = """# Lanewise beside other vector indexes

`make bench-compare` measures this and writes this page; `BENCH_ARGS=--help` lists what it takes.

All graphs have equal parameters: m = 16 (32 links in the lowest layer), ef_construction = 200; \
Vamana with alpha = 1.2 in two passes; lists: the power of 2 nearest to 4 √n. Each library is \
asked with its own settings (breadths, lists x candidates to rank …); those near its best curve \
are measured. Queries are batch calls. Rounds are interleaved: ratios are formed inside a round, \
and figures are medians over the rounds, in brackets the lowest and the highest. Recall counts \
ties. Speed between two settings is interpolated (its logarithm is linear in recall). `≥` and \
`*`: even the cheapest setting is above that recall, its speed is taken. —: recall not \
reached. *By CPU time*: queries for each second that the process ran, so that other work on the \
machine weighs less. OpenMP's threads wait passively (OMP_WAIT_POLICY)."""


def page(records: Sequence[Record], pictures: Mapping[str, str]) -> str:
    """The whole page; `pictures`: the file of each record's picture, by its name."""
    parts = [HEAD, "## Best against best", _best_table(records)]
    for record in records:
        parts += [f"## {record.name}", _facts(record)]
        if record.name in pictures:
            parts.append(f"![recall and speed of {record.name}]({pictures[record.name]})")
        for threads in record.plan["threads"]:
            parts += [
                f"### {record.name}: queries a second, {_threads(threads)}",
                _speeds(record, threads),
            ]
        parts += [f"### {record.name}: build, memory, single queries", _costs(record)]
    return "\n\n".join(parts) + "\n"


def best_of_ours(record: Record, threads: int, target: float) -> Row | None:
    """The fastest configuration of Lanewise at this recall."""
    return _fastest([row for row in record.done if is_ours(row.library)], threads, target)


def best_peer(record: Record, ours: Row | None, threads: int, target: float) -> Row | None:
    """The peer over which `ours` has the smallest ratio; without ours, the fastest.

    By ratio, since peers of different waves never ran side by side and ours ran with all.
    """
    peers = [row for row in record.done if not is_ours(row.library)]
    if ours is None:
        return _fastest(peers, threads, target)
    speeds = ours.speeds(threads, target)
    over = [(ratio(speeds, row.speeds(threads, target)), row) for row in peers]
    reached = [(value.median, row) for value, row in over if value]
    return min(reached, key=lambda each: each[0])[1] if reached else None


def _fastest(rows: Sequence[Row], threads: int, target: float) -> Row | None:
    speeds = [(_speed(row, threads, target), row) for row in rows]
    reached = [(value.median, row) for value, row in speeds if value]
    return max(reached, key=lambda each: each[0])[1] if reached else None


def _speed(row: Row, threads: int, target: float) -> Summary | None:
    return summary(list(row.speeds(threads, target).values()))


def _best_table(records: Sequence[Record]) -> str:
    head = [
        "data",
        "threads",
        "recall",
        "best Lanewise",
        "queries/s",
        "best peer",
        "queries/s",
        "Lanewise over peer",
        "by CPU time",
    ]
    body = []
    for record in records:
        for threads in record.plan["threads"]:
            for target in TARGETS:
                ours = best_of_ours(record, threads, target)
                peer = best_peer(record, ours, threads, target)
                over, by_cpu = (
                    ratio(ours.speeds(threads, target, clock), peer.speeds(threads, target, clock))
                    if ours and peer
                    else None
                    for clock in ("qps", "cpu_qps")
                )
                body.append(
                    [
                        record.name,
                        str(threads),
                        f"{target:.2f}",
                        ours.library if ours else DASH,
                        _qps(ours and _speed(ours, threads, target)),
                        peer.library if peer else DASH,
                        _qps(peer and _speed(peer, threads, target)),
                        f"**{_ratio(over)}**" if over else DASH,
                        _ratio(by_cpu),
                    ]
                )
    return _table(head, body)


def _facts(record: Record) -> str:
    plan, data = record.plan, record.data
    releases = dict.fromkeys(row.release for row in record.rows if row.release)
    loads = ", ".join(f"{load:.2f}" for load in record.loads)
    waves = "; ".join(
        f"{len(names)} libraries holding {held / 2**30:.1f} GiB" for names, held in record.waves
    )
    lines = [
        f"{data['about']}",
        f"{data['base_len']:,} x {data['dim']} {data['dtype']}, {data['queries_len']:,} queries, "
        f"{data['metric']}, k={plan['k']}; local intrinsic dimension {data['lid']:.1f} "
        "(Levina & Bickel, median at 100 neighbours)",
        f"rounds: {plan['rounds']}; builds: {plan['builds']}; together in memory: {waves} "
        f"(limit {plan['memory_bytes'] / 2**30:.1f} GiB; ours are in each)",
        *(f"{name}: {value}" for name, value in record.facts.items()),
        f"versions: {', '.join(releases)}",
        f"load average, ours included: {loads} (before the builds, before each round, at the end)",
    ]
    if strangers := [row for row in record.rows if not row.applicable]:
        told = "; ".join(f"{row.library} {row.reason}" for row in strangers)
        lines.append(f"not for these data: {told}")
    return "\n".join(f"- {line}" for line in lines)


def _speeds(record: Record, threads: int) -> str:
    best = {target: best_of_ours(record, threads, target) for target in TARGETS}
    names = ", ".join(f"{t:.2f} {row.library}" for t, row in best.items() if row)
    head = [
        "index",
        *(f"{target:.2f}" for target in TARGETS),
        "spread",
        "highest recall",
        *(f"ours over it, {target:.2f}" for target in TARGETS),
    ]
    body = []
    for row in record.rows:
        if not row.applicable:
            continue
        if row not in record.done:
            body.append([row.library, _not_run(row)])
            continue
        at = {target: _speed(row, threads, target) for target in TARGETS}
        middle = at[0.95]
        body.append(
            [
                row.library,
                *(_qps(each) for each in at.values()),
                f"{middle.high / middle.low:.2f}" if middle else DASH,
                f"{max(recall for recall, _ in row.points(threads).values()):.4f}",
                *(_over(best[target], row, threads, target) for target in TARGETS),
            ]
        )
    note = (
        "*Spread*: the fastest round over the slowest at recall 0.95. *Highest recall*: of the "
        f"settings measured. *Ours*: the fastest Lanewise at that recall ({names or DASH})."
    )
    return f"{_table(head, body)}\n\n{note}"


def _over(ours: Row | None, row: Row, threads: int, target: float) -> str:
    if is_ours(row.library):
        return ""
    over = ours and ratio(ours.speeds(threads, target), row.speeds(threads, target))
    return f"{over.median:.2f}{'*' * over.above}" if over else DASH


def _costs(record: Record) -> str:
    head = [
        "index",
        "build wall s",
        "build CPU s",
        "B/vector grown",
        "B/vector stated",
        "P50 µs",
        "P99 µs",
        "at recall",
        "kernels",
    ]
    body = []
    for row in record.done:
        first = row.builds[0]  # later builds grow into memory that the first one returned
        body.append(
            [
                row.library,
                f"{_median(row.builds, 'wall_s'):.1f}",
                f"{_median(row.builds, 'cpu_s'):.1f}",
                _bytes(first["grown_bytes"]),
                _bytes(first["own_bytes"]),
                f"{_median(row.latency, 'p50_us'):.0f}",
                f"{_median(row.latency, 'p99_us'):.0f}",
                f"{row.recall(row.latency_label):.3f} ({row.latency_label})",
                first["kernels"] or DASH,
            ]
        )
    note = (
        "Builds use all threads. *Grown* is the growth of anonymous memory over the build, the "
        "vectors that the index keeps included; *stated* is what the library itself says. Single "
        "queries are called from Python at the setting nearest recall 0.95, one thread."
    )
    return f"{_table(head, body)}\n\n{note}"


def _median(readings: Sequence[Mapping[str, Any]], name: str) -> float:
    return median(each[name] for each in readings)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _not_run(row: Row) -> str:
    """One line that cannot break the table."""
    return "not run: " + " ".join(str(row.reason).split()).replace("|", "\\|")


def _qps(speed: Summary | None) -> str:
    return f"{'≥' * speed.above}{speed.median:,.0f}" if speed else DASH


def _ratio(value: Summary | None) -> str:
    if value is None:
        return DASH
    return f"{value.median:.2f}{'*' * value.above} ({value.low:.2f} to {value.high:.2f})"


def _bytes(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right; short rows are filled up."""
    rows = [[*row, *[""] * (len(head) - len(row))] for row in body]
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(each) + " |" for each in (head, rule, *rows))
