"""A progress bar on stderr: redrawn on a terminal, a line for each tenth elsewhere."""

import sys
import time
from types import TracebackType


class Progress:
    """`with Progress("vectors", total) as bar: bar.advance(n)`.

    The remaining time supposes that what is left goes as fast as what this run did;
    `done` is what earlier runs did.
    """

    def __init__(self, label: str, total: int, done: int = 0) -> None:
        self._label = label
        self._total = max(total, 1)
        self._first = self._done = done
        self._start = time.monotonic()
        self._drawn_at = float("-inf")
        self._tenth = 10 * done // self._total
        self._live = sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._draw()
            print(file=sys.stderr)

    def advance(self, amount: int) -> None:
        """Counts `amount` more as done."""
        self._done += amount
        if self._live:
            if time.monotonic() - self._drawn_at >= 0.1:
                self._draw()
        elif self._tenth < (tenth := 10 * self._done // self._total):
            self._tenth = tenth
            print(self._line(), file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._live:
            self._drawn_at = time.monotonic()
            print(f"\r{self._line()}", end="\x1b[K", file=sys.stderr, flush=True)

    def _line(self) -> str:
        share = self._done / self._total
        spent = time.monotonic() - self._start
        bar = "#" * int(30 * share)
        line = f"{self._label:<9} [{bar:<30}] {share:4.0%}  {_clock(spent)}"
        if self._first < self._done < self._total:
            rest = spent * (self._total - self._done) / (self._done - self._first)
            line += f", {_clock(rest)} left"
        return line


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
