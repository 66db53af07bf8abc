"""The record as Markdown: what ran where, the tables, the ratios."""

from collections.abc import Iterable, Sequence
from statistics import median

from .adapters import OURS
from .curves import Summary, ratio, summary
from .dataset import Dataset
from .driver import Plan, Results, Row

TARGETS = (0.90, 0.95, 0.99)
DASH = "—"


def markdown(title: str, facts: dict[str, str], plan: Plan, data: Dataset, results: Results) -> str:
    """The whole record; ends with a newline."""
    done = [row for row in results.rows if row.reason is None]
    parts = [f"# {title}", _preface(facts, plan, data, results)]
    for threads in plan.threads:
        parts += [
            f"## Queries a second, {_threads(threads)}",
            _speeds(results.rows, threads),
        ]
    parts += ["## Build, memory, single queries", _costs(results.rows)]
    for ours in (row for row in done if row.library in OURS):
        peers = [row for row in done if row.library not in OURS]
        parts += [
            f"## {ours.library} over each peer",
            _ratios(ours, peers, plan.threads),
        ]
    return "\n\n".join(parts) + "\n"


def _preface(facts: dict[str, str], plan: Plan, data: Dataset, results: Results) -> str:
    releases = dict.fromkeys(row.release for row in results.rows if row.release)
    loads = [f"{load:.2f}" for load in results.loads]
    lines = [
        f"{data.base.shape[0]:,} x {data.base.shape[1]} {data.base.dtype}, "
        f"{len(data.queries):,} queries, squared L2, k={plan.k}, m={plan.graph.m}, "
        f"ef_construction={plan.graph.ef_construction}, ef {', '.join(map(str, plan.efs))}; "
        f"rounds: {plan.rounds}, interleaved; builds: {plan.builds}",
        *(f"{name}: {value}" for name, value in facts.items()),
        f"versions: {', '.join(releases)}",
        f"load average (ours included): {loads[0]} before the builds, "
        f"{', '.join(loads[1:-1])} before the rounds, {loads[-1]} at the end",
    ]
    return "\n".join(f"- {line}" for line in lines) + (
        "\n\nQueries are batch calls. Figures are medians over the rounds; *spread* is the fastest "
        "round over the slowest at recall 0.95. Recall counts ties. `≥`: even the cheapest setting "
        f"is above that recall, its speed is given. {DASH}: recall not reached."
    )


def _speeds(rows: Sequence[Row], threads: int) -> str:
    head = [
        "index",
        *(f"{target:.2f}" for target in TARGETS),
        "spread",
        "highest recall",
    ]
    body = []
    for row in rows:
        if row.reason is not None:
            body.append([row.library, _not_run(row)])
            continue
        at = {target: summary(row.speeds(threads, target)) for target in TARGETS}
        middle = at[0.95]
        highest = max(row.recall(ef, threads) for ef in row.searches[threads])
        spread = f"{middle.high / middle.low:.2f}" if middle else DASH
        body.append(
            [
                row.library,
                *(_qps(each) for each in at.values()),
                spread,
                f"{highest:.4f}",
            ]
        )
    return _table(head, body)


def _costs(rows: Sequence[Row]) -> str:
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
    for row in rows:
        if row.reason is not None:
            body.append([row.library, _not_run(row)])
            continue
        first = row.builds[0]  # later builds grow into memory that the first one returned
        assert row.latency_ef is not None
        body.append(
            [
                row.library,
                f"{median(each['wall_s'] for each in row.builds):.1f}",
                f"{median(each['cpu_s'] for each in row.builds):.1f}",
                _bytes(first["grown_bytes"]),
                _bytes(first["own_bytes"]),
                f"{median(each['p50_us'] for each in row.latency):.0f}",
                f"{median(each['p99_us'] for each in row.latency):.0f}",
                f"{row.recall(row.latency_ef):.3f} (ef {row.latency_ef})",
                first["kernels"] or DASH,
            ]
        )
    note = (
        "Builds use all threads. *Grown* is the growth of anonymous memory over the build, the "
        "vectors that the index keeps included; *stated* is what the library itself says. Single "
        "queries are called from Python at the setting nearest recall 0.95, one thread."
    )
    return f"{_table(head, body)}\n\n{note}"


def _ratios(ours: Row, peers: Iterable[Row], threads: Sequence[int]) -> str:
    columns = [(count, target, "qps") for count in threads for target in TARGETS]
    if 1 in threads:
        columns += [(1, target, "cpu_qps") for target in TARGETS]
    head = [
        "peer",
        *(
            f"{_threads(count)}{', CPU time' * (clock != 'qps')}, {target:.2f}"
            for count, target, clock in columns
        ),
    ]
    body = [
        [peer.library]
        + [
            _ratio(ratio(ours.speeds(count, target, clock), peer.speeds(count, target, clock)))
            for count, target, clock in columns
        ]
        for peer in peers
    ]
    note = (
        "Speed at equal recall, ours over theirs: the median of the rounds' ratios, in brackets "
        "the lowest and the highest. *CPU time* counts the seconds this process ran, so other "
        "work on the machine weighs less. `*`: one of the two is above that recall at its "
        f"cheapest setting. {DASH}: one of the two does not reach it."
    )
    return f"{_table(head, body)}\n\n{note}"


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
