"""NC214 mtu-blackhole."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import Chosen, chosen
from ncclcheck.checks.network._peers import evidence, subject
from ncclcheck.checks.network._reach import Blame, blame, directions, not_probed
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC214",
    "mtu-blackhole",
    "Large packets arrive between all nodes",
    needs=("interfaces",),
    nodes=2,
    met=True,
)
def mtu_blackhole(snapshot: Snapshot) -> Iterator[Answer]:
    """Packets as large as the MTU allows arrive between all nodes, not only small messages.

    ## Why it matters
    The nodes connect, since that needs only small packets. The first large message is sent in full-size packets. A
    device between the nodes drops them without an error, and TCP sends them again forever: the job hangs in its first
    collective.

    ## How to fix
    Set the MTU of the interface to what the network carries, on all nodes, or the MTU of the switch ports to that of
    the nodes. A tunnel or VPN needs 50 to 100 bytes less. Do not block ICMP "fragmentation needed".

    ## Source
    RFC 2923 2.1 (black hole of path MTU discovery); RFC 4821.
    """
    probed = directions(snapshot, "mtu")
    mtus = {explanation.host: explanation for explanation in chosen(snapshot)}
    for explanation in blame([probe for probe in probed if probe.outcome == "stalled"], probed):
        yield _finding(explanation, mtus)
    yield from not_probed(snapshot, "mtu")


def _finding(explanation: Blame, mtus: dict[str, Chosen]) -> Finding:
    hosts = tuple(
        dict.fromkeys(host for probe in explanation.directions for host in (probe.from_host, probe.to_host))
    )
    known = [mtus[host] for host in hosts if host in mtus]
    listed = ", ".join(f"{place.host} {place.interface.mtu}" for place in known[:4])
    name = known[0].name if known else "eth0"
    return Finding(
        "error",
        f"{subject(explanation)} with large packets: small messages arrive, large packets are lost (MTU: {listed}), "
        "so the first large collective hangs",
        explanation.hosts,
        (
            *evidence(explanation.directions),
            *(
                Evidence(
                    (place.host,),
                    f"MTU of {place.name}",
                    str(place.interface.mtu),
                    "what the path carries",
                    "sysfs",
                )
                for place in known
            ),
        ),
        (
            Fix(
                "lower the MTU of the nodes to what the path carries, or raise it on the switch ports between them",
                (
                    f"ip link set dev {name} mtu {_carried(known)}",
                    f"ping -M do -s {_carried(known) - 28} ADDRESS   # must get an answer",
                ),
                risk="smaller packets cost some bandwidth",
            ),
        ),
    )


def _carried(known: list[Chosen]) -> int:
    """The MTU to try: the smaller of the ends if they differ, else Ethernet's own."""
    sizes = sorted({mtu for place in known if not isinstance(mtu := place.interface.mtu, Missing)})
    return sizes[0] if len(sizes) > 1 else min([1500, *sizes])
