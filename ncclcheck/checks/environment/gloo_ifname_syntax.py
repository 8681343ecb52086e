"""NC607 gloo-ifname-syntax."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    shown,
)
from ncclcheck.checks.hosts import job_size
from ncclcheck.checks.ifname_settings import gloo_fault
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname

_VARIABLE = "GLOO_SOCKET_IFNAME"
_SOURCE = "torch/csrc/distributed/c10d/init.cpp, gloo/transport/tcp/device.cc"


@check(
    "NC607",
    "gloo-ifname-syntax",
    "GLOO_SOCKET_IFNAME has a value that Gloo can read",
    needs=("environment", "interfaces"),
)
def gloo_ifname_syntax(snapshot: Snapshot) -> Iterator[Answer]:
    """GLOO_SOCKET_IFNAME is a comma list of exact names of interfaces that have an address.

    ## Why it matters
    Gloo does not support prefixes, `^` or `=`: a value copied from NCCL_SOCKET_IFNAME makes every Gloo group fail
    with "Unable to find address for". That hits jobs that use NCCL too: init_process_group without a backend, DDP's
    and FSDP's helper groups, monitored_barrier and checkpoints use Gloo. Over `lo` the nodes cannot reach each other.

    ## How to fix
    Write the exact name of the interface on that node, such as `GLOO_SOCKET_IFNAME=eth0`.

    ## Source
    torch/csrc/distributed/c10d/init.cpp; gloo/transport/tcp/device.cc; seen with torch 2.13.
    """
    several = job_size(snapshot) > 1
    yield from findings(snapshot, _judge_several if several else _judge)


def _judge_several(place: EnvironmentPlace) -> Iterator[Judged]:
    """In a job of several nodes a loopback interface is of no use either."""
    yield from _judge(place)
    value, interfaces = place.value(_VARIABLE), place.facts.interfaces
    if isinstance(interfaces, Missing):
        return
    loopback = {interface.name for interface in interfaces if interface.kind == "loopback"}
    names = [name for name in ifname.parse_gloo(value) or () if name in loopback]
    if value and names:
        why = f"{names[0]} is the loopback interface, which other nodes cannot reach"
        yield _case(place, value, why, _meant(("^" + names[0],), interfaces))


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    value = place.environment.get(_VARIABLE)
    names = ifname.parse_gloo(value)
    if value is None or not value:
        return
    if place.value(_VARIABLE) is None:
        yield OneAnswer(f"the value of {_VARIABLE} was not recorded")
        return
    interfaces = place.facts.interfaces
    if isinstance(interfaces, Missing):
        return  # the registry says so
    if names is None:
        yield _case(
            place,
            value,
            "a single character counts as not set, so Gloo uses the address of the host name",
            "",
        )
        return
    for name in names:
        fault = gloo_fault(name, interfaces)
        if fault:
            yield _case(place, value, fault, _meant(names, interfaces))
            return


def _meant(names: tuple[str, ...], interfaces: tuple[Interface, ...]) -> str:
    """The list that was meant, where that is beyond doubt."""
    usable = [
        interface.name for interface in interfaces if interface.addresses and interface.kind != "loopback"
    ]
    first = names[0] if names else ""
    if first.startswith("^"):
        excluded = tuple(part for part in (name.lstrip("^=").strip() for name in names) if part)
        matching = (
            [candidate for candidate in usable if not candidate.startswith(excluded)] if excluded else usable
        )
        return matching[0] if len(matching) == 1 else ""
    fixed = []
    for name in names:
        plain = name.lstrip("=").strip().strip("\"'")
        hits = [candidate for candidate in usable if candidate == plain] or [
            candidate for candidate in usable if plain and candidate.startswith(plain)
        ]
        if len(hits) != 1:
            return ""
        fixed += hits
    return ",".join(dict.fromkeys(fixed))


def _case(place: EnvironmentPlace, value: str, why: str, meant: str) -> SettingFault:
    is_unset = not ifname.is_set(value)
    interfaces = place.facts.interfaces
    names = (
        ""
        if isinstance(interfaces, Missing)
        else ", ".join(interface.name for interface in interfaces if interface.addresses)
    )
    fix = Fix("write the exact name of an interface of this node, or remove it", ("ip -brief address",))
    if meant:
        fix = Fix("write the exact name", (), {_VARIABLE: meant})
    return SettingFault(
        "warning" if is_unset else "error",
        (_VARIABLE,),
        shown(_VARIABLE, value),
        why if is_unset else f"{why}, so every Gloo group fails",
        f"exact names among {names}",
        _SOURCE,
        fix,
    )
