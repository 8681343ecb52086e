"""NC933 mtu-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import after_the_end, failures, remarks, timeouts, troubles
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_ETHERNET = 1500
_SMALL = 1000  # bytes that every path carries
_LINES_OF_A_PING = 8
_REFUSED = ("1", "9")  # local length error, remote invalid request


@cause(
    "NC933",
    "mtu-mismatch",
    "Large packets do not reach the peers",
    explains=(
        "idle-connection-dropped",
        "slow-rank-timeout",
        "firewall-blocked-ports",
        "rank-exception",
        "collective-mismatch",
    ),
    between_nodes=True,
    fixes=(
        Fix(
            "set the same MTU on all nodes and switch ports of that network, or lower it to what the path "
            "carries",
            (
                "ip -o link | grep mtu; ping -M do -s 8972 PEER",
                "ncclcheck preflight --select mtu-differs,mtu-blackhole",
            ),
        ),
    ),
)
def mtu_mismatch(log: Log) -> Iterator[Suspect]:
    """The MTU differs between the nodes, or from what the path carries: small messages pass, large ones do not.

    ## Why it matters
    Start-up works with small messages; the first large transfer stalls and looks like a hang.

    ## How to fix
    Set one MTU on all interfaces and switches of the path.

    ## Source
    RFC 1191 and RFC 4821 (path MTU black holes); errno EMSGSIZE; ibv_modify_qp with a path MTU larger than
    active_mtu.
    """
    reports = [
        *remarks(log, "mtu-error"),
        *(path for path in remarks(log, "path-mtu") if int(path.values["path"]) > int(path.values["port"])),
    ]
    values = [
        remark for remark in remarks(log, "mtu") if "NET/IB" not in remark.text and "qpn" not in remark.text
    ]
    differ = len({value.values["mtu"] for value in values}) > 1
    stalled = [*failures(log, established=True), *timeouts(log)]
    jumbo = any(int(value.values["mtu"]) > _ETHERNET for value in values)
    if reports:
        yield suspect(
            "Packets are larger than the MTU of the path.",
            [*reports, *values],
        )
    elif lost := _large_pings_lost(log):
        yield suspect(
            f"Packets of {lost[0].values['size']} bytes do not pass the path to {lost[0].values['host']}.",
            [*lost, *values],
            confidence="likely",
            at=lost[0].place,
            hosts=tuple(dict.fromkeys(ping.values["host"] for ping in lost)),
        )
    elif cut := _longer_than_expected(log):
        yield suspect(
            "The ends of a connection use different path MTUs, and the adapter refused a longer message.",
            cut,
            confidence="likely",
            at=cut[-1].place,
        )
    elif values and troubles(log) and (differ or (jumbo and stalled)):
        sizes = ", ".join(sorted({value.values["mtu"] for value in values}))
        yield suspect(
            f"Interfaces have an MTU of {sizes}, and transfers stall after they began: large packets do not "
            "pass the path.",
            [*values, *stalled],
            confidence="likely",
            at=(stalled or values)[0].place,
        )


def _large_pings_lost(log: Log) -> list[Remark]:
    """Return the pings that nobody answered and that are larger than an Ethernet packet, or than one that passed.

    They count only in a log of a job with trouble.
    """
    lost = remarks(log, "ping-lost")
    passed = min((int(ping.values["size"]) for ping in remarks(log, "ping-answered")), default=_ETHERNET)
    if remarks(log, "ping-whole"):  # of the same look, so the path is there
        passed = min(passed, _SMALL)
    pings = [ping for ping in remarks(log, "large-ping") if int(ping.values["size"]) > min(passed, _ETHERNET)]
    stalled = troubles(log) or after_the_end(log, "trouble-word")
    return [
        ping
        for ping in pings
        if stalled
        and any(
            end.place.file == ping.place.file and 0 < end.place.line - ping.place.line <= _LINES_OF_A_PING
            for end in lost
        )
    ]


def _longer_than_expected(log: Log) -> list[Remark]:
    """Return what NCCL says of the MTU of its queue pairs, where it differs and an adapter refused a message."""
    paths = remarks(log, "ib-mtu")
    refused = [remark for remark in remarks(log, "ib-completion") if remark.values.get("status") in _REFUSED]
    differ = len({path.values["mtu"] for path in paths}) > 1 and len({path.place.host for path in paths}) > 1
    return [*paths, *refused] if differ and refused else []
