"""NC201 ifname-no-match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named
from ncclcheck.checks.ifname_settings import (
    GLOO_VARIABLE,
    NCCL_VARIABLE,
    IfnameSetting,
    gloo_fault,
    is_misread,
    not_settled,
    settings,
    settings_of_ranks,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
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
    for"), but only on the nodes where the name differs, while the others wait for them.

    ## How to fix
    NCCL: name a prefix (`eth`) or an exact name (`=eth0`) that every node has; no spaces, no IP addresses. Gloo: a
    comma list of exact names; it knows neither prefixes nor `^` and `=`. From NCCL 2.28 an interface must be running.
    A value that is wrong on every node is reported by `env-bad-value` and `gloo-ifname-syntax`.

    ## Source
    NCCL src/misc/socket.cc (findInterfaces; since 2.29 src/os/linux.cc); torch's gloo device
    (torch/csrc/distributed/c10d/init.cpp, gloo/transport/tcp/device.cc).
    """
    known = (*settings(snapshot), *settings_of_ranks(snapshot))
    yield from _of_nccl(known)
    yield from _of_gloo(known)
    for slug, is_at_fault in (("env-bad-value", _is_misread), ("gloo-ifname-syntax", _is_no_list_for_gloo)):
        if any(is_at_fault(setting) for setting in known):
            yield NotApplicable(f"the cause is how the value is written: see {slug}")
    yield from not_settled(snapshot)


def _of_nccl(known: Sequence[IfnameSetting]) -> Iterator[Finding]:
    by_id: dict[str, list[IfnameSetting]] = {}
    by_name: dict[str, list[IfnameSetting]] = {}
    for setting in known:
        if setting.choice.interface is not None or _is_misread(setting):
            continue
        if setting.comm_id is not None:
            by_id.setdefault(setting.comm_id, []).append(setting)
        else:
            by_name.setdefault(setting.nccl or "", []).append(setting)
    for value, failing in by_id.items():
        yield _comm_id(value, failing)
    for value, failing in by_name.items():
        yield _nccl(value, failing)


def _of_gloo(known: Sequence[IfnameSetting]) -> Iterator[Finding]:
    missing: dict[str, list[IfnameSetting]] = {}
    for setting in known:
        for name in _looked_up(setting):
            if name not in setting.names:
                missing.setdefault(name, []).append(setting)
    for name, failing in missing.items():
        yield _gloo(name, failing)


def _is_misread(setting: IfnameSetting) -> bool:
    if setting.choice.interface is not None:
        return False
    if setting.comm_id is not None:
        return is_misread(setting.comm_id, "NCCL_COMM_ID")
    return setting.nccl is not None and is_misread(setting.nccl)


def _is_no_list_for_gloo(setting: IfnameSetting) -> bool:
    return len(_looked_up(setting)) < len(setting.gloo or ())


def _looked_up(setting: IfnameSetting) -> tuple[str, ...]:
    """The names for Gloo of which nothing is wrong but, perhaps, that there is no such interface."""
    if any(name.startswith("^") for name in setting.gloo or ()):
        return ()
    return tuple(name for name in setting.gloo or () if not gloo_fault(name, setting.interfaces))


def _nccl(value: str, failing: list[IfnameSetting]) -> Finding:
    hosts = tuple(dict.fromkeys(setting.host for setting in failing))
    why = failing[0].choice.reason
    what = f"{NCCL_VARIABLE}={value!r} gives NCCL no interface" if value else "NCCL finds no interface to use"
    return Finding(
        "error",
        f"{what} on {named(hosts)}{_ranks(failing)}{_state(value, failing[0])}: "
        "the job fails there, and the other nodes wait",
        hosts,
        tuple(
            Evidence(
                (setting.host,),
                f"{NCCL_VARIABLE}{setting.of_rank} ({setting.nccl_source})"
                if value
                else f"interfaces{setting.of_rank}",
                f"{value!r} among {', '.join(setting.names)}"
                if value
                else ", ".join(setting.names) or "none",
                "an interface that is up and has an address",
                f"{setting.choice.source}: {setting.choice.library or 'model of NCCL'}: {why}",
            )
            for setting in failing
        ),
        (
            Fix(
                "set it to a name that this node has, or unset it and let NCCL choose",
                ("ip -brief address",),
            ),
        ),
    )


def _comm_id(value: str, failing: list[IfnameSetting]) -> Finding:
    """NCCL_COMM_ID takes the place of NCCL_SOCKET_IFNAME, so it is the cause."""
    hosts = tuple(dict.fromkeys(setting.host for setting in failing))
    return Finding(
        "error",
        f"NCCL_COMM_ID={value!r} leaves NCCL no interface on {named(hosts)}{_ranks(failing)}: "
        "the job fails there, and the other nodes wait",
        hosts,
        tuple(
            Evidence(
                (setting.host,),
                f"NCCL_COMM_ID{setting.of_rank}",
                f"{value!r} among {', '.join(setting.names)}",
                "an interface in the subnet of that address",
                f"{setting.choice.source}: {setting.choice.library or 'model of NCCL'}: {setting.choice.reason}",
            )
            for setting in failing
        ),
        (Fix("remove it: torch does not need it", ("unset NCCL_COMM_ID",)),),
    )


def _ranks(failing: list[IfnameSetting]) -> str:
    """Which further ranks it is about, where no node has the value as a whole."""
    ranks = [setting.of_rank.removeprefix(" of ") for setting in failing]
    return f", {', '.join(ranks[:8])}" if all(ranks) else ""


def _state(value: str, setting: IfnameSetting) -> str:
    """What is wrong with an interface that the value does name."""
    matching = [
        interface for interface in setting.interfaces if value and ifname.parse(value).matches(interface.name)
    ]
    down = [interface.name for interface in matching if not interface.running]
    bare = [interface.name for interface in matching if not interface.addresses]
    if bare:
        return f" ({named(bare)} has no address)"
    return f" ({named(down)} is not running)" if down else ""


def _gloo(name: str, failing: list[IfnameSetting]) -> Finding:
    hosts = tuple(setting.host for setting in failing)
    return Finding(
        "error",
        f"{GLOO_VARIABLE} names {name!r}, which is no interface of {named(hosts)}: "
        "every Gloo group fails there",
        hosts,
        tuple(
            Evidence(
                (setting.host,),
                GLOO_VARIABLE,
                ",".join(setting.gloo or ()),
                f"names among {', '.join(setting.names)}",
                "environment",
            )
            for setting in failing
        ),
        (Fix("set it to the exact name of an interface of this node, or unset it", ("ip -brief address",)),),
    )
