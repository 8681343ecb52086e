"""Failed logs whose messages nobody knows: every line that tells of trouble is written in words of no language.

What is left of such a log is what a new version, another program or another language would leave: labels, levels and
what went well before. Whatever it is, a failed log must not be called fine.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from itertools import islice

import pytest

from ncclcheck.checks.logs._view import is_alarm
from ncclcheck.checks.logs._works import remarks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.prefix import parse
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.events import CommInit, Event, Log, Remark
from tests.further import mostly_further
from tests.logs.rounds import HeldOut, explain, held_out, rounds

# Topics that tell of an end, a place or a version, and not of trouble.
KEPT = frozenset(
    {"finished", "succeeded", "nccl-banner", "rank-place", "used", "harmless", "launched", "inspected"}
)
PARTS = 3
WORD = re.compile(r"[A-Za-z]{3,}")
NCCLS_HEADER = re.compile(r"^(.*NCCL (?:WARN|INFO) )(.*)$")


def word(source: random.Random) -> str:
    return "".join(
        source.choice("bdfgklmnprstvz") + source.choice("aeiou") for _ in range(source.randint(2, 4))
    )


def reworded(line: str, source: random.Random) -> str:
    """The line with its labels and numbers, and other words."""
    message = parse(line).message
    start = line.rfind(message) if message else len(line)
    if header := NCCLS_HEADER.match(line):
        start = len(header[1])
    return line[:start] + WORD.sub(lambda _: word(source), line[start:])


def read(log: HeldOut) -> Log:
    collector = Collector()
    collector.read(log.name, batches([log.text.encode()]))
    return collector.log()


def is_trouble(event: Event) -> bool:
    """Return True if the line says that something went wrong, or may have."""
    if isinstance(event, CommInit):
        return False
    return is_alarm(event) or not (isinstance(event, Remark) and event.topic in KEPT)  # type: ignore[arg-type]


def mutants(part: int) -> Iterator[tuple[HeldOut, str]]:
    """Yield each failed log that shows no work or end after its trouble, with the lines of trouble in other words."""
    logs = (log for path in rounds() for log in held_out(path))
    for log in islice(logs, part, None, PARTS):
        if "healthy" in log.causes:
            continue
        known = read(log)
        lines = {event.place.line for event in known.events if is_trouble(event)}
        at_work = [line for lines_of_file in known.works.values() for line in lines_of_file]
        if not lines or remarks(known, "finished") or max(at_work, default=0) > max(lines):
            continue
        source = random.Random(zlib.crc32(log.name.encode()))  # noqa: S311
        yield (
            log,
            "\n".join(
                reworded(line, source) if number in lines else line
                for number, line in enumerate(log.text.split("\n"), 1)
            ),
        )


@pytest.mark.slow
@pytest.mark.parametrize("part", mostly_further(range(PARTS), 1))  # mark.further
def test_no_failed_log_is_called_fine_where_nobody_knows_its_words(part: int) -> None:
    outcomes = [(log.name, explain(log.name, text.encode()).outcome) for log, text in mutants(part)]
    assert len(outcomes) >= 300
    assert [name for name, outcome in outcomes if outcome == "healthy"] == []
