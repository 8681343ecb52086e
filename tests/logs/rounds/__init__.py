"""Held-out logs: written after public issue threads and labelled before explain ran on them; one file per round.

A round is a text file. Each log begins with three lines and ends where the next begins:

    %%% NAME
    expect: CAUSE[, CAUSE]      each of these is a right answer; `healthy` or `undetermined` where nothing is named
    culprits: HOST, rank N      one of these is named, and at most as many wrong ones; `none`: nobody (optional)
    source: ADDRESS             the thread after which it was written, or `made: ` and what was done to a real job
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.snapshot import Snapshot

FOLDER = Path(__file__).parent
_DIRECTLY = "The log says so directly."


class HeldOut(Struct, frozen=True):
    """A log with what is expected of it; `culprits` is None where the label says nothing of them."""

    name: str
    text: str
    causes: tuple[str, ...]
    culprits: frozenset[str] | None
    source: str


class Answer(Struct, frozen=True):
    """What explain says about a log: its first cause or outcome, whether it is certain, whom it names."""

    cause: str
    is_certain: bool
    hosts: tuple[str, ...]
    errors: int


def rounds() -> list[Path]:
    """Return the files of all rounds, the oldest first."""
    return sorted(FOLDER.glob("round-*.txt"))


def held_out(path: Path) -> Iterator[HeldOut]:
    """Yield the logs of a round."""
    for part in path.read_text().split("%%% ")[1:]:
        name, rest = part.split("\n", 1)
        fields: dict[str, str] = {}
        while "source" not in fields:
            line, rest = rest.split("\n", 1)
            key, value = line.split(": ", 1)
            assert key in ("expect", "culprits", "source"), f"{name}: {line}"
            fields[key] = value
        culprits = fields.get("culprits")
        yield HeldOut(
            name,
            rest,
            tuple(fields["expect"].split(", ")),
            None if culprits is None else frozenset(culprits.split(", ")) - {"none"},
            fields["source"],
        )


def answer(log: HeldOut) -> Answer:
    """Explain the log as the command does."""
    result = explain(log.name, log.text.encode())
    first = result.findings[0] if result.findings else None
    return Answer(
        first.slug if first is not None and result.outcome == "named" else result.outcome,
        first is not None and result.outcome == "named" and _DIRECTLY in first.summary,
        first.hosts if first is not None else (),
        sum(finding.severity == "error" for finding in result.findings),
    )


def explain(name: str, text: bytes) -> Explained:
    """Return the verdict on one log."""
    collector = Collector()
    collector.read(name, batches([text]))
    log = collector.log()
    runs = list(run_checks(Snapshot(nodes=(), log=log), Selection(), "log"))
    assert [run.reason for run in runs if run.outcome == "crashed"] == []
    return explained(log, runs)


def names_the_culprit(log: HeldOut, given: Answer) -> bool:
    """Return True if the answer names a culprit and at most as many wrong ones, or nobody where nobody is to blame."""
    if not log.culprits:
        return not given.hosts
    right = log.culprits & set(given.hosts)
    return bool(right) and len(given.hosts) <= 2 * len(right)
