"""NC604 env-harmful."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    SettingFault,
    findings,
    places,
    shown,
    unset,
)
from ncclcheck.checks.environment._workarounds import WORKAROUNDS, Workaround
from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_types import is_read, where_from
from ncclcheck.nccl.variables.variables_values import misread

_HOST_ID = "NCCL_HOSTID"
Certainty: TypeAlias = Literal["yes", "no", "not known"]


@check(
    "NC604",
    "env-harmful",
    "No leftover workaround costs speed",
    needs=("environment", "nccl"),
    image=True,
)
def env_harmful(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting turns off a fast path or is only for debugging.

    ## Why it matters
    Workarounds from old forum threads turn off NVLink, RDMA or NVLink SHARP, and stay in scripts and images for
    years. NCCL's user guide says that its debugging variables must not be kept. A setting is only reported if its
    value has that effect in this version, and if it costs something: NCCL_IB_DISABLE=1 only with RDMA devices,
    NCCL_P2P_DISABLE=1 only with several GPUs that have peer-to-peer. A setting that only prints more, forces what
    NCCL would find by itself, or that frameworks turn off on purpose (NCCL_NVLS_ENABLE=0), is information. The same
    NCCL_HOSTID on several nodes is an error: NCCL treats them as one machine.

    ## How to fix
    Remove it, then measure with `ncclcheck bench` before and after. Keep it only if the fault still exists.

    ## Source
    NCCL's user guide, environment variables; src/misc/utils.cc (getHostHash), src/graph/paths.cc, src/transport,
    src/graph/tuning.cc.
    """
    yield from findings(snapshot, _judge)
    yield from _one_host_id(snapshot)


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    for workaround in WORKAROUNDS:
        value = place.value(workaround.name)
        if (
            value is None
            or not _is_in_force(place, workaround.name, value)
            or not workaround.applies(place, value)
        ):
            continue
        yield _case(workaround, value, workaround.cost)
    yield from _network_turned_off(place)


def _is_in_force(place: EnvironmentPlace, name: str, value: str) -> bool:
    """True if every version in question reads the variable, and reads the value as it is written."""
    variable = TABLE[name]
    if variable.owner != "NCCL":
        return True
    for version in place.versions():
        wrong = misread(variable, value, version, place.environment) if is_read(variable, version) else None
        if not is_read(variable, version) or (wrong is not None and wrong.weight != "info"):
            return False
    return True


def _case(workaround: Workaround, value: str, cost: str) -> SettingFault:
    return SettingFault(
        workaround.severity,
        (workaround.name,),
        shown(workaround.name, value),
        cost,
        f"{workaround.name}={workaround.instead}" if workaround.instead else f"{workaround.name} not set",
        where_from(TABLE[workaround.name]),
        Fix(workaround.text, (), {workaround.name: workaround.instead})
        if workaround.instead
        else unset(workaround.name, text=workaround.text),
    )


# --- one identity for several hosts ---------------------------------------------------------------------------------


def _one_host_id(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_HOSTID with one value on several nodes: ranks of different nodes believe that they share memory and GPUs."""
    hosts: dict[str, list[str]] = {}
    for place in places(snapshot):
        value = place.value(_HOST_ID)
        if value and place.rank is None:
            hosts.setdefault(value, []).append(place.host)
    for value, same in hosts.items():
        if len(same) > 1:
            yield Finding(
                "error",
                f"{shown(_HOST_ID, value)} on {named(same)}: NCCL treats them as one machine, tries "
                "shared memory and peer-to-peer between them, and fails or hangs",
                tuple(same),
                (
                    Evidence(
                        tuple(same),
                        _HOST_ID,
                        value,
                        "a different value on each node",
                        "NCCL src/misc/utils.cc",
                    ),
                ),
                (unset(_HOST_ID, text="remove it: NCCL uses the host name and the boot id"),),
            )


# --- RDMA turned off --------------------------------------------------------------------------------------------------


def _network_turned_off(place: EnvironmentPlace) -> Iterator[Judged]:
    """NCCL_IB_DISABLE=1 and NCCL_NET=Socket cost what RDMA gives, where there is any."""
    network = place.value("NCCL_NET")
    by_name = network is not None and network.lower() == "socket"
    is_off = place.number("NCCL_IB_DISABLE", 0) != 0
    if is_off and network is not None and network.lower() not in {"ib", "socket"}:
        return  # a plug-in is demanded by name, so InfiniBand of NCCL itself is not in question
    names = [name for name, has in (("NCCL_IB_DISABLE", is_off), ("NCCL_NET", by_name)) if has]
    if not names:
        return
    has_rdma, devices = _rdma(place)
    if has_rdma == "no":
        return
    if has_rdma == "yes":
        cost = f"NCCL uses TCP only, though {devices} would be 5 to 50 times faster"
    else:
        cost = "NCCL uses TCP only, 5 to 50 times slower if this node has RDMA devices, which is not known"
    yield SettingFault(
        "warning",
        tuple(names),
        " and ".join(shown(name, place.environment[name]) for name in names),
        cost,
        f"{' and '.join(names)} not set",
        "NCCL src/transport/net_ib (ncclIbInit), src/init.cc",
        unset(*names, text="remove it unless RDMA is broken here"),
    )


def _rdma(place: EnvironmentPlace) -> tuple[Certainty, str]:
    """Whether there are ports that NCCL's own RDMA network could use, and their names."""
    rdma = place.facts.rdma
    if isinstance(rdma, Missing):
        return "not known", ""
    usable = [port.device for port in rdma.ports if _is_active(port)]
    doubtful = [
        port for port in rdma.ports if isinstance(port.state, Missing) or isinstance(port.link_layer, Missing)
    ]
    if usable:
        return "yes", listed(usable, 4)
    return ("not known" if doubtful else "no"), ""


def _is_active(port: RdmaPort) -> bool:
    return port.state == "ACTIVE" and port.link_layer in {"InfiniBand", "Ethernet"}
