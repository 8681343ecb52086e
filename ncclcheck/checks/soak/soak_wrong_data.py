"""NC843 soak-wrong-data."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import soak_not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.soak._soak import events_of, evidence, span_words
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC843", "soak-wrong-data", "All blocks of the soak gave correct results")
def soak_wrong_data(snapshot: Snapshot) -> Iterator[Answer]:
    """Every element of every block has the correct result of the collective; the first wrong one ends the soak.

    ## Why it matters
    Wrong data without an error corrupts a training run, and a bad GPU, memory or link may give them once in hours.

    ## How to fix
    Drain the node whose ranks are named, and look at its ECC counters and links. Where all ranks have wrong elements,
    one of them sent them: run fewer nodes at a time.

    ## Source
    The data depend on rank, position and iteration, and are exact in any order of reduction; the timed buffers are
    verified.
    """
    for event in events_of(snapshot, "wrong"):
        yield Finding(
            "error",
            f"{event.summary}, {span_words(event)}: training would continue with wrong data",
            event.hosts,
            evidence(event),
            (Fix("drain the node, and look at its ECC counters and links", ("nvidia-smi -q -d ECC",)),),
        )
    yield from soak_not_measured(snapshot)
