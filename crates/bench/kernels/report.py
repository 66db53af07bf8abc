"""The record: Markdown for people, CSV for everything."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from . import limits
from .cases import Case, Form
from .lanewise import NAME, Library
from .machine import Level
from .measure import Plan, Row, ratio
from .panama import Figure

COLUMNS = (
    *("op", "type", "dim", "form", "library", "variant", "chosen", "ns", "gb_per_second"),
    *("share_of_limit", "times_as_fast_as_best_peer", "error", "rounds_ns", "remark"),
)
FORM_TITLES = {
    Form.ONE: "one-to-one, in the L1",
    Form.ROWS_L2: "one query, rows in sequence from the L2",
    Form.ROWS_MEMORY: "one query, rows in sequence from memory",
    Form.IDS: "one query, random rows from memory, 64 ids a call",
    Form.TILE: "32 queries by 128 rows",
}


@dataclass
class Record:
    """All that a run found out."""

    facts: dict[str, str]
    plan: Plan
    levels: list[Level]
    rows: list[Row]
    library: Library
    missing: list[str]
    lucene: list[Figure]
    arm: str | None

    def __post_init__(self) -> None:
        self.by_case: dict[Case, list[Row]] = {}
        for row in self.rows:
            self.by_case.setdefault(row.case, []).append(row)

    def ours(self, case: Case) -> Row | None:
        """What the library runs in `case`: the chosen variant, or through norms where faster."""
        mine = [
            row
            for row in self.by_case[case]
            if row.library == NAME and row.ns and self.library.is_chosen(case, row.variant)
        ]
        return min(mine, key=lambda row: row.median, default=None)

    def best_peer(self, case: Case) -> Row | None:
        """The fastest of the other libraries."""
        others = [r for r in self.by_case[case] if r.library not in (NAME, limits.NAME) and r.ns]
        return min(others, key=lambda row: row.median, default=None)

    def limit(self, case: Case) -> Row | None:
        """The slower of the loads and the arithmetic; a lone one might not be what binds."""
        both = [row for row in self.by_case[case] if row.library == limits.NAME]
        if len(both) < 2 and case.form not in (Form.ROWS_MEMORY, Form.IDS):
            return None
        return max(both, key=lambda row: row.median)

    def markdown(self) -> str:
        """The record as a page."""
        parts = ["# Kernels: beside other libraries, and beside the limits", self._facts()]
        parts += [self._machine(), self._verdict()]
        parts += [self._section("Times as fast as the best other library", self._ratio)]
        parts += [self._behind(), self._section("Share of the limit that binds", self._share)]
        parts += [self._section("Nanoseconds a distance, GB/s of rows", self._figures)]
        parts += [self._variants(), self._arithmetic(), self._wrong()]
        if self.lucene:
            parts.append(self._lucene())
        if self.arm:
            parts.append(self.arm)
        return "\n\n".join(part for part in parts if part) + "\n"

    def write_csv(self, path: Path) -> None:
        """A line for each contender in each case."""
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(COLUMNS)
            for row in self.rows:
                case, limit, peer = row.case, self.limit(row.case), self.best_peer(row.case)
                mine = row.library == NAME
                out.writerow(
                    (
                        case.op,
                        case.type,
                        case.dim,
                        case.form,
                        row.library,
                        row.variant,
                        int(mine and self.library.is_chosen(case, row.variant)),
                        f"{row.median:.4g}" if row.ns else "",
                        f"{row.gb_per_second:.4g}" if row.ns else "",
                        f"{ratio(row, limit) ** -1:.3f}" if row.ns and limit else "",
                        f"{ratio(peer, row):.3f}" if mine and row.ns and peer else "",
                        f"{row.off:.1e}",
                        " ".join(f"{ns:.4g}" for ns in row.ns),
                        row.reason,
                    )
                )

    def _facts(self) -> str:
        lines = [f"- {name}: {text}" for name, text in self.facts.items()]
        lines += [f"- not compared: {reason}" for reason in self.missing]
        lines.append(
            f"- medians of {self.plan.rounds} interleaved rounds, processor time of one thread; "
            "ratios are formed inside a round. Peers without a form are called pair by pair, as "
            "their users do. Random rows go to peers without prefetching."
        )
        return "\n".join(lines)

    def _machine(self) -> str:
        rows = [
            (level.name, f"{level.bytes_read / 1024:,.0f}", f"{level.gb_per_second:.1f}")
            for level in self.levels
        ]
        return "## What one core reads\n\n" + _table(("from", "KiB", "GB/s"), rows)

    def _verdict(self) -> str:
        rows = []
        for form in Form:
            ratios = [
                ratio(peer, mine)
                for case in self._cases(form)
                if (mine := self.ours(case)) and (peer := self.best_peer(case))
            ]
            shares = [share for case in self._cases(form) if (share := self._share_of(case))]
            if ratios:
                ahead = sum(each > 1 for each in ratios)
                within = sum(each >= 0.85 for each in shares)
                worst = f"{min(ratios):.2f} to {max(ratios):.2f}"
                of_all = f"{within} of {len(shares)}"
                rows.append((form, f"{ahead} of {len(ratios)}", worst, of_all))
        head = ("form", "ahead of every other library", "times as fast", "within 15 % of the limit")
        return "## In short\n\n" + _table(head, rows)

    def _section(self, title: str, cell: Callable[[Case], str]) -> str:
        parts = [f"## {title}"]
        for form in Form:
            found = self._cases(form)
            for scan in (False, True):
                some = [case for case in found if case.is_scan == scan]
                dims = sorted({case.dim for case in some})
                kernels = list(dict.fromkeys(case.kernel for case in some))
                texts = {(case.kernel, case.dim): cell(case) for case in some}
                rows = [
                    (name, *cells)
                    for name in kernels
                    if any(cells := [texts.get((name, dim), "") for dim in dims])
                ]
                if rows:
                    unit = " (sub-quantizers)" if scan else ""
                    head = ("kernel", *(f"{dim}" for dim in dims))
                    parts.append(f"**{FORM_TITLES[form]}{unit}**\n\n" + _table(head, rows))
        return "\n\n".join(parts) if len(parts) > 1 else ""

    def _ratio(self, case: Case) -> str:
        mine, peer = self.ours(case), self.best_peer(case)
        if not mine or not peer:
            return ""
        times = ratio(peer, mine)
        text = f"{times:.2f} {peer.library}"
        return text if times > 1 else f"**{text}**"

    def _share_of(self, case: Case) -> float | None:
        mine, limit = self.ours(case), self.limit(case)
        return 1 / ratio(mine, limit) if mine and limit else None

    def _share(self, case: Case) -> str:
        share, limit = self._share_of(case), self.limit(case)
        return f"{share:.0%} {limit.variant.partition(':')[0]}" if share and limit else ""

    def _figures(self, case: Case) -> str:
        mine = self.ours(case)
        return f"{mine.median:.3g} ({mine.gb_per_second:.3g})" if mine else ""

    def _behind(self) -> str:
        rows = []
        for case in self.by_case:
            mine, peer = self.ours(case), self.best_peer(case)
            if mine and peer and (times := ratio(peer, mine)) <= 1:
                ours = f"{mine.variant} {mine.median:.3g}"
                other = f"{peer.library} {peer.variant} {peer.median:.3g}"
                name = (case.kernel, str(case.dim), case.form)
                errors = (f"{mine.off:.0e}", f"{peer.off:.0e}")
                rows.append((*name, ours, other, f"{times:.2f}", *errors))
        if not rows:
            return "## Behind\n\nNowhere."
        head = ("kernel", "dim", "form", "ours, ns", "theirs, ns", "times as fast")
        return "## Behind\n\n" + _table((*head, "our error", "their error"), rows)

    def _variants(self) -> str:
        parts = []
        for form in Form:
            isas, rows = [], []
            for case in self._cases(form):
                mine = {r.variant: r for r in self.by_case[case] if r.library == NAME and r.ns}
                if len(mine) > 2:
                    isas += [isa for isa in mine if isa not in isas]
                    rows.append((case, mine))
            # Dimensions whose variants were all measured.
            for dim in sorted({case.dim for case, _ in rows}):
                table = [
                    (case.kernel, *(f"{mine[i].median:.3g}" if i in mine else "" for i in isas))
                    for case, mine in rows
                    if case.dim == dim
                ]
                parts.append(f"**{form}, {dim}**\n\n" + _table(("kernel", *isas), table))
        if not parts:
            return ""
        return "\n\n".join(["## Every instruction set, nanoseconds", *parts])

    def _arithmetic(self) -> str:
        steps: dict[tuple[str, str], list[float]] = {}
        for row in self.rows:
            if row.variant.startswith(limits.STEP):
                lines = row.case.row_bytes / row.case.results_per_row / 64
                name = (row.case.kernel, row.variant.removeprefix(limits.STEP))
                steps.setdefault(name, []).append(row.median / lines)
        rows = [(*name, f"{median(each):.3g}") for name, each in steps.items()]
        head = ("kernel", "a line's arithmetic at least", "ns a line")
        return "## Arithmetic limits\n\n" + _table(head, rows) if rows else ""

    def _wrong(self) -> str:
        rows = [
            (r.case.kernel, str(r.case.dim), r.case.form, f"{r.library} {r.variant}", r.reason)
            for r in self.rows
            if r.reason
        ]
        if not rows:
            return ""
        return "## Not counted\n\n" + _table(("kernel", "dim", "form", "who", "why"), rows)

    def _lucene(self) -> str:
        panama = {(f.kernel, f.dims): f.ns for f in self.lucene if f.way == "lucene"}
        pairs = {(case.kernel, case.dim): self.ours(case) for case in self._cases(Form.ONE)}
        rows = []
        for (kernel, dim), ns in panama.items():
            ways = {f.way: f.ns for f in self.lucene if (f.kernel, f.dims) == (kernel, dim)}
            mine = pairs.get((kernel, dim))
            from_c = f"{mine.median:.1f}" if mine else ""
            called = [f"{ways[w]:.1f}" if w in ways else "" for w in ("heap", "offHeap", "copyIn")]
            times = f"{ns / ways['heap']:.2f}" if "heap" in ways else ""
            rows.append((kernel, str(dim), f"{ns:.1f}", *called, from_c, times))
        head = ("kernel", "dim", "Lucene, Panama", "ours from Java: heap", "off-heap", "copied in")
        note = (
            "By `java/jmh`, just before; medians. The last column is Lucene's by ours on the heap."
        )
        title = f"## Lucene, nanoseconds one-to-one\n\n{note}\n\n"
        return title + _table((*head, "ours from C", "times as fast"), rows)

    def _cases(self, form: Form) -> list[Case]:
        return [case for case in self.by_case if case.form == form]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
