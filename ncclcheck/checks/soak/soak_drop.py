"""NC840 soak-drop."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import soak_not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.soak._soak import events_of, evidence, span_words, unlearned, unseen
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC840", "soak-drop", "The collectives were as fast at all times")
def soak_drop(snapshot: Snapshot) -> Iterator[Answer]:
    """No block of the soak was slower than those before it for long, by more than `--drop`, and none became so.

    ## Why it matters
    A job runs for days. A link that retrains at a lower rate, a neighbour that fills a trunk, or a card that is
    throttled makes it slower without an error, and no test of a minute sees it.

    ## How to fix
    Look at the node and direction that the finding names, and at the counters that moved with it: errors of a link
    mean a cable or a transceiver, packets sent again mean a queue that overflows, stolen CPU time means another guest
    of the same host. Where no node is named, the pairs did not tell one: all were slow alike, or paths that share no
    end: look at what they share.

    ## Source
    CUSUM (Page 1954) over the medians of blocks, standardised by median and MAD, cut at 4, k 1, h 12, four blocks at
    least, and a guard of `--drop` (ncclcheck/measure/soak/drops.py); the share of false alarms is in
    docs/measurements.md. The node is named by pairs measured before and during the drop. A trend is judged by Theil
    and Sen from an hour on (ncclcheck/measure/soak/trend.py); in less than a day it has to lose `--drop` in two hours.
    Where the blocks vary so much that a drop of a minute has to be more than twice `--drop` to be seen, the check is
    unknown, and says from which size on it would have been.
    """
    for event in [*events_of(snapshot, "drop"), *events_of(snapshot, "trend")]:
        yield Finding(
            "error",
            f"{event.summary}, {span_words(event)}",
            event.hosts,
            evidence(event),
            (
                Fix(
                    "look at the link of the node that is named, at its counters, and at who else uses the network",
                    ("ip -s link", "ethtool -S NAME", "nstat -a | grep -i retrans"),
                ),
            ),
        )
    yield from soak_not_measured(snapshot)
    yield from unlearned(snapshot)
    yield from unseen(snapshot)
