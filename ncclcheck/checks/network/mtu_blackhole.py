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

_HEADERS = (20, 50, 80, 100, 150, 220, 300)  # that tunnels and VPNs take of a packet, or more
_LEAST_MTU = 600


@check(
    "NC214",
    "mtu-blackhole",
    "Large packets arrive between all nodes",
    needs=("interfaces",),
    nodes=2,
    joined=True,
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
        (_fix(explanation, known),),
    )


def _fix(explanation: Blame, known: list[Chosen]) -> Fix:
    name, first = known[0].name if known else "eth0", explanation.directions[0]
    carried = _carried(known)
    if all(
        place.interface.mtu == carried for place in known
    ):  # a tunnel on the way: how much it takes is not known
        sizes = " ".join(
            str(carried - headers - 28) for headers in _HEADERS if carried - headers > _LEAST_MTU
        )
        commands: tuple[str, ...] = (
            f"for size in {sizes}; do ping -c 1 -W 1 -M do -s $size {first.address} >/dev/null && break; done; "
            f"echo $((size + 28))   # on {first.from_host}: the MTU that the path carries",
            f"sudo ip link set dev {name} mtu MTU   # that number, on all nodes",
            "sudo sysctl -w net.ipv4.tcp_mtu_probing=1   # or on all nodes: TCP finds the size by itself",
        )
    else:
        commands = (
            f"sudo ip link set dev {name} mtu {carried}",
            f"ping -M do -s {carried - 28} ADDRESS   # must get an answer",
        )
    return Fix(
        "lower the MTU of the nodes to what the path carries, or raise it on the switch ports between them",
        commands,
        risk="smaller packets cost some bandwidth",
    )


def _carried(known: list[Chosen]) -> int:
    """The MTU to try: the smaller of the ends if they differ, else Ethernet's own."""
    sizes = sorted({mtu for place in known if not isinstance(mtu := place.interface.mtu, Missing)})
    return sizes[0] if len(sizes) > 1 else min([1500, *sizes])
