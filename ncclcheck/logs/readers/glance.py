"""A first glance at a line, in bytes: can it match any pattern? Nearly all lines of a large log cannot.

A line that is let through needlessly costs 50 microseconds; one that is not let through is never seen again. So the
texts it searches for are derived from the patterns of all readers (`literals.needed_by`), not listed.
"""

from __future__ import annotations

import re

from ncclcheck.logs.messages import software
from ncclcheck.logs.nccl_lines.nccl_info import TUPLE_PATTERN, VERSION_PATTERN
from ncclcheck.logs.patterns.automaton import any_of
from ncclcheck.logs.patterns.topics import TOPIC_PATTERNS
from ncclcheck.logs.patterns.topics_harmless import HARMLESS_PATTERNS
from ncclcheck.logs.readers import (
    collectives,
    connections,
    exceptions,
    exits,
    levels,
    ras_text,
    sections,
    shell_status,
)

# Beginnings of NCCL INFO messages that carry nothing for us, five bytes each (they come by the thousand).
QUIET_STARTS = frozenset(
    b"INFO " + start
    for start in (
        b"Trees", b"Ring ", b"Ring:", b"Tree ", b"Setti", b"P2P C", b"Conne", b"threa", b"Laten", b"Patte", b"=== S",
        b"Algor", b"CC On", b"CC Of", b"Init ", b"New p", b"MNNVL", b"RAS c",
    )
)  # fmt: skip

TRACEBACK = "Traceback (most recent call last)"
STOPPED_BY_HAND = (b"^C", b"^Z")  # as a terminal shows the keys; too short for the search
LAST_ERROR = "Last error:"  # of torch's exceptions: NCCL's last warning is the line after it
PATTERNS = (
    *TOPIC_PATTERNS,
    *HARMLESS_PATTERNS,
    *collectives.PATTERNS,
    *connections.PATTERNS,
    *exceptions.PATTERNS,
    *exits.PATTERNS,
    *ras_text.PATTERNS,
    VERSION_PATTERN,
    TUPLE_PATTERN,
    re.escape(TRACEBACK),
    re.escape(LAST_ERROR),
    r"\] INFO NET/Socket : Using|\] INFO NET : Using interface",  # NCCL 2.3 and older
    *levels.PATTERNS,
    *sections.PATTERNS,
    *shell_status.PATTERNS,
)
_has_a_text = any_of(PATTERNS, software.needles())


def may_mean_something(line: bytes) -> bool:
    """Return True if the line has a text that some pattern needs; False means that no pattern matches it."""
    return _has_a_text(line.lower()) or line.startswith(STOPPED_BY_HAND)
