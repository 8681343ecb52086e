"""NC124 node-stood-still."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC124", "node-stood-still", "ncclcheck itself ran all the time on every node")
def node_stood_still(snapshot: Snapshot) -> Iterator[Answer]:
    """The process of ncclcheck on each node ran whenever it should have.

    ## Why it matters
    A process that is stopped, or whose machine is paused, swaps or migrates, hears nobody and answers nobody. The
    others look silent to it, and its own connections look slow. Nobody is accused of that time: what was measured
    with this node meanwhile is dropped, and the run ends with exit code 3 (inconclusive). A job would have waited for
    this node, too.

    ## How to fix
    Run it again. If it happens again, look for live migration or snapshots of a virtual machine, a lack of memory
    (`vmstat 1`, the columns si and so), a debugger, or a frozen control group.

    ## Source
    ncclcheck's own rule: a thread beats ten times a second, and the monotonic clock shows the gaps. A pause of less
    than 3 s, or one without consequences, is not reported.
    """
    for still in snapshot.stood_still:
        effect = (
            "it is not known who answered meanwhile"
            if still.is_listener
            else "what was measured with it meanwhile says nothing"
        )
        yield Finding(
            "warning",
            f"{still.sentence} (stopped, a paused virtual machine, or a lack of memory): {effect}",
            (still.host,),
            (
                Evidence(
                    (still.host,),
                    "the longest pause",
                    f"{still.seconds:.1f} s",
                    "0.1 s",
                    "the monotonic clock of its own process",
                ),
            ),
            (
                Fix(
                    f"run it again; look for pauses of {still.host}: migration, swapping, a debugger",
                    ("vmstat 1",),
                ),
            ),
        )
    yield from not_reported(snapshot)
