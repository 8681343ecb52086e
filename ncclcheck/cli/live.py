"""Progress on standard error: a line that is kept up to date on a terminal, plain lines anywhere else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ncclcheck import timeouts
from ncclcheck.cli.screen import write_error
from ncclcheck.report.text.plain import plain

if TYPE_CHECKING:
    from rich.progress import Progress

    from ncclcheck.measure.remaining import TimeLeft

_MINUTE_S = 60


class Screen(Protocol):
    """Where progress is shown."""

    def say(self, text: str) -> None:
        """One line that stays."""
        ...

    def show(self, standing: TimeLeft) -> None:
        """How far the benchmark is, in place of what was shown before."""
        ...


class Silence:
    """With --quiet."""

    def say(self, text: str) -> None:
        """Nothing is shown."""

    def show(self, standing: TimeLeft) -> None:
        """Nothing is shown."""


class Lines:
    """For a file or a pipe: lines only, one every ten seconds. State: when the last one was written."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written = clock()

    def say(self, text: str) -> None:
        """One line."""
        self._written = self._clock()
        write_error(text)

    def show(self, standing: TimeLeft) -> None:
        """One line, if there was none for a while."""
        if self._clock() - self._written >= timeouts.LIVE_LINE_S:
            self.say(f"{standing.where}: {points_text(standing)}")


class Terminal:
    """For people: the last line moves. State: rich's bar, which there is from the first word about a benchmark on."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def say(self, text: str) -> None:
        """One line, above the bar."""
        if self._bar is None:
            write_error(text)
        else:
            self._bar.console.print(
                f"ncclcheck: {plain(text)}", markup=False, highlight=False, soft_wrap=True
            )

    def show(self, standing: TimeLeft) -> None:
        """Draw the progress bar."""
        text = f"{standing.where} · {points_text(standing)}"
        if self._bar is None:
            self._bar = _bar()
            self._bar.add_task(text, total=standing.of_points)
            self._bar.start()
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=standing.points, description=text, refresh=True)

    def close(self) -> None:
        """Give the line back to the terminal."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def screen(*, quiet: bool) -> Iterator[Screen]:
    """Where progress is shown, for as long as the block runs; then nothing moves on the terminal any more."""
    if quiet:
        yield Silence()
    elif not _is_live():
        yield Lines()
    else:
        terminal = Terminal()
        try:
            yield terminal
        finally:
            terminal.close()


def points_text(standing: TimeLeft) -> str:
    """For people: "3 of 8 points measured, about 14 s left"."""
    done = f"{standing.points} of {standing.of_points} points measured"
    return done if standing.left_s is None else f"{done}, about {_seconds(standing.left_s)} left"


def _seconds(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 2 * _MINUTE_S else f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"


def _is_live() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
