"""NC220 link-flapped."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.network._links import CARRIER, counted_growth, growth_text
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC220",
    "link-flapped",
    "No network link went down during the run",
    needs=("link_counters",),
    nodes=2,
    joined=True,
)
def link_flapped(snapshot: Snapshot) -> Iterator[Answer]:
    """The carrier of no network interface changed from when the facts were read until the end of the run.

    ## Why it matters
    A link that comes and goes loses every packet in between. TCP hides short gaps, so everything still connects, and
    the job stalls or fails each time. A link that flaps within the few seconds of a run flaps often.

    ## How to fix
    Replace the cable or transceiver, clean the fibre, and look at the switch port. `dmesg` shows when the link went.

    ## Source
    /sys/class/net/NAME/carrier_changes (Documentation/ABI/testing/sysfs-class-net), read twice. A soak reads it after
    each block, and `link-flap` judges that.
    """
    if not isinstance(snapshot.bench, Missing) and snapshot.bench.soak is not None:
        yield NotApplicable("a soak reads the carriers after each block: see link-flap")
        return
    used = {choice.host: choice.name for choice in chosen(snapshot)}
    for node, links in snapshot.known("link_counters"):
        interfaces = () if isinstance(node.facts.interfaces, Missing) else node.facts.interfaces
        hardware = {interface.name for interface in interfaces if interface.is_hardware}
        for link in links:
            if link.interface != used.get(node.host) and link.interface not in hardware:
                continue  # of a container, which comes and goes
            grown = counted_growth(link)
            if isinstance(grown, Missing):
                yield NotKnown(f"the carrier of {link.interface}: {grown}", (node.host,))
            elif changes := grown.get(CARRIER, 0):
                yield _finding(snapshot, (node.host, link.interface), changes, used.get(node.host))
    yield from not_chosen(snapshot)


def _finding(snapshot: Snapshot, where: tuple[str, str], changes: int, used: str | None) -> Finding:
    host, name = where
    severity: Severity = "error" if name == used else "warning"
    what = "NCCL's interface" if name == used else "an interface that NCCL does not bootstrap on"
    return Finding(
        severity,
        f"the link of {name} on {host} ({what}) went down or came up {changes} times during this run: "
        "every packet in between is lost, and the job stalls or fails",
        (host,),
        growth_text(snapshot, host, name),
        (
            Fix(
                "check the cable, the transceiver and the switch port",
                (f"dmesg -T | grep {name}", f"ethtool {name}", f"cat /sys/class/net/{name}/carrier_changes"),
            ),
        ),
    )
