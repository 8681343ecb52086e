"""NC842 link-flap."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import soak_not_measured, soak_of
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.soak._soak import events_of, evidence, span_words
from ncclcheck.model.finding import Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check("NC842", "link-flap", "No link went down during the soak")
def link_flap(snapshot: Snapshot) -> Iterator[Answer]:
    """The carrier of no network interface with an address, and of no network card, changed during the soak.

    ## Why it matters
    A link that comes and goes loses every packet in between. TCP hides a short gap, a job with RDMA ends.

    ## How to fix
    Replace the cable or transceiver, clean the fibre, and look at the switch port. `dmesg` shows when the link went.

    ## Source
    /sys/class/net/NAME/carrier_changes (Documentation/ABI/testing/sysfs-class-net), read after each block.
    Bridges and tunnels are left out, which go up and down with containers. A node whose carriers were not read in more
    than a tenth of the blocks is unknown.
    """
    for event in events_of(snapshot, "flap"):
        yield Finding(
            "error",
            f"{event.summary}, {span_words(event)}",
            event.hosts,
            evidence(event),
            (Fix("check the cable, the transceiver and the switch port", ("dmesg -T | grep -i link",)),),
        )
    soak = soak_of(snapshot)
    if soak is not None and soak.carriers_unread:
        yield NotKnown("the carriers could not be read during the soak", soak.carriers_unread)
    yield from soak_not_measured(snapshot)
