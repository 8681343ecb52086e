"""NC201 ifname-no-match."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.ifname_settings import GLOO_VARIABLE, NCCL_VARIABLE, Setting, not_settled, settings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname


@check(
    "NC201",
    "ifname-no-match",
    "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name interfaces that exist",
    needs=("interfaces", "environment", "nccl"),
)
def ifname_no_match(snapshot: Snapshot) -> Iterator[Answer]:
    """NCCL finds an interface on every node, and every name given to Gloo exists.

    ## Why it matters
    Without a match NCCL fails at once ("Bootstrap : no socket interface found") and Gloo too ("Unable to find address
    for"), on the nodes where the name is different only, while the others wait for them.

    ## How to fix
    NCCL: name a prefix (`eth`) or an exact name (`=eth0`) that every node has; no spaces, no IP addresses. Gloo: a
    comma list of exact names; it knows neither prefixes nor `^` and `=`. From NCCL 2.28 an interface must be running.

    ## Source
    NCCL src/misc/socket.cc (findInterfaces; since 2.29 src/os/linux.cc); torch's gloo device
    (torch/csrc/distributed/c10d/init.cpp, gloo/transport/tcp/device.cc).
    """
    known = settings(snapshot)
    groups: dict[str, list[Setting]] = {}
    for one in known:
        if one.choice.interface is None:
            groups.setdefault(one.nccl or "", []).append(one)
    for value, failing in groups.items():
        yield _nccl(value, failing)
    gloo: dict[str, list[Setting]] = {}
    for one in known:
        for name in one.gloo or ():
            if name not in one.names:
                gloo.setdefault(name, []).append(one)
    for name, failing in gloo.items():
        yield _gloo(name, failing)
    yield from not_settled(snapshot)


def _nccl(value: str, failing: list[Setting]) -> Finding:
    hosts = tuple(one.host for one in failing)
    why = failing[0].choice.reason
    what = f"{NCCL_VARIABLE}={value!r} gives NCCL no interface" if value else "NCCL finds no interface to use"
    return Finding(
        "error",
        f"{what} on {named(hosts)}{_state(value, failing[0])}: the job fails there, and the other nodes wait",
        hosts,
        tuple(
            Evidence(
                (one.host,),
                f"{NCCL_VARIABLE} ({one.nccl_source})" if value else "interfaces",
                f"{value!r} among {', '.join(one.names)}" if value else ", ".join(one.names) or "none",
                "an interface that is up and has an address",
                f"{one.choice.source}: {one.choice.library or 'model of NCCL'}: {why}",
            )
            for one in failing
        ),
        (
            Fix(
                "set it to a name that this node has, or unset it and let NCCL choose",
                ("ip -brief address",),
            ),
        ),
    )


def _state(value: str, one: Setting) -> str:
    """What is wrong with an interface that the value does name."""
    matching = [
        interface for interface in one.interfaces if value and ifname.parse(value).matches(interface.name)
    ]
    down = [interface.name for interface in matching if not interface.running]
    bare = [interface.name for interface in matching if not interface.addresses]
    if bare:
        return f" ({named(bare)} has no address)"
    return f" ({named(down)} is not running)" if down else ""


def _gloo(name: str, failing: list[Setting]) -> Finding:
    hosts = tuple(one.host for one in failing)
    syntax = "; Gloo takes exact names only, not the patterns of NCCL" if name[:1] in {"^", "="} else ""
    return Finding(
        "error",
        f"{GLOO_VARIABLE} names {name!r}, which is no interface of {named(hosts)}{syntax}: "
        "every Gloo group fails there",
        hosts,
        tuple(
            Evidence(
                (one.host,),
                GLOO_VARIABLE,
                ",".join(one.gloo or ()),
                f"names among {', '.join(one.names)}",
                "environment",
            )
            for one in failing
        ),
        (Fix("set it to the exact name of an interface of this node, or unset it", ("ip -brief address",)),),
    )
