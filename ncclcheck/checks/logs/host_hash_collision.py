"""NC921 host-hash-collision."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line
from ncclcheck.checks.logs._view import remarks, settings, troubles
from ncclcheck.model.events import CommInit, Event, Log
from ncclcheck.model.finding import Fix

_DEVICE = re.compile(r"nvmlDev (?P<number>\d{1,3}) busId (?P<bus>[0-9a-f]{1,12})\b")

_NOT_SHARED = re.compile(
    r"failed to open CUDA IPC handle|Unable to open shared memory nccl|Error while attaching to shared memory"
)


@cause(
    "NC921",
    "host-hash-collision",
    "NCCL takes different hosts for the same one",
    explains=(
        "duplicate-gpu",
        "gpu-visibility",
        "shm-too-small",
        "p2p-broken",
        "rank-exception",
        "firewall-blocked-ports",
    ),
    fixes=(
        Fix(
            "give every machine its own hostname (not only its own address) and its own boot_id; or set "
            "NCCL_HOSTID to something different on each",
            (
                "hostname; cat /proc/sys/kernel/random/boot_id   # on every node",
                "ncclcheck preflight --select hostname-loopback",
            ),
        ),
    ),
)
def host_hash_collision(log: Log) -> Iterator[Suspect]:
    """NCCL takes different hosts for one: they have the same name, or the same name up to the first dot.

    ## Why it matters
    NCCL then counts all ranks as local, and tries shared memory or peer-to-peer between machines, or finds two
    ranks on one GPU.

    ## How to fix
    Give every machine its own host name, or set NCCL_HOSTID differently on each.

    ## Source
    NCCL misc/utils.cc getHostHash (host name up to the first dot and boot_id; NCCL_HOSTID).
    """
    same_id = _one_id(log)
    if same_id:
        yield same_id
        return
    apart = _two_gpus_of_one_number(log) or _hops_between_nodes(log)
    if apart and troubles(log):
        yield suspect(
            "Ranks that NCCL takes for neighbours on one host have GPUs of the same number: they are on different "
            "machines, or in different containers, with the same host name.",
            [*apart, *troubles(log)[:2]],
            confidence="likely",
            at=troubles(log)[0].place,
            explains=("gpu-visibility", "rank-exception", "p2p-broken", "shm-too-small"),
        )
        return
    by_host: dict[str, set[str]] = {}
    for process in log.processes:
        if process.host and process.address:
            by_host.setdefault(process.host, set()).add(process.address.partition("%")[0])
    alike = {
        host: addresses
        for host, addresses in by_host.items()
        if len(addresses) > 1 and (_is_one_interface(log, host) or _shared_in_vain(log))
    }
    if not alike or not troubles(log):
        return
    complaints = remarks(
        log, "duplicate-gpu", "device-ordinal", "shm", "p2p-disabled", "cuda-fault", "generic-nccl"
    )
    lines: list[Event] = [complaint for complaint in complaints if complaint.place.host in alike]
    lines = lines or list(troubles(log))
    host, addresses = next(iter(alike.items()))
    yield suspect(
        f"Machines with different addresses ({', '.join(sorted(addresses))}) have the same host name {host!r}, so "
        "NCCL takes them for one host.",
        lines,
        confidence="certain" if complaints else "possible" if _connected_over_network(log) else "likely",
        at=log.processes[0].place,
    )


def _connected_over_network(log: Log) -> bool:
    """Return True if NCCL connects ranks over the network though all have one host name: it does tell them apart."""
    names = {process.host for process in log.processes}
    return len(names) == 1 and any(
        link.via.startswith("NET/") for process in log.processes for link in process.links
    )


def _shared_in_vain(log: Log) -> bool:
    """Return True if NCCL could not open what another rank of the same host shares with it: memory, or a GPU's."""
    return any(_NOT_SHARED.search(remark.text) for remark in remarks(log, "nccl-warn", "shm"))


def _is_one_interface(log: Log, host: str) -> bool:
    """True if the addresses stand on an interface of one name: on one machine that would be one address."""
    pairs = {
        (process.interface, process.address)
        for process in log.processes
        if process.host == host and process.address
    }
    names = [name for name, _ in pairs]
    return len(names) > len(set(names))


def _two_gpus_of_one_number(log: Log) -> list[Event]:
    """Return two starts of one communicator on one host whose GPUs have the same NVML number and not the same bus."""
    seen: dict[tuple[str, str, str], tuple[str, Event]] = {}
    for event in log.events:
        match = _DEVICE.search(event.text) if isinstance(event, CommInit) and event.place.host else None
        if match is None or not isinstance(event, CommInit):
            continue
        key = (event.place.host or "", event.comm_id, match["number"])
        bus, first = seen.setdefault(key, (match["bus"], event))
        if bus != match["bus"]:
            return [first, event]
    return []


def _hops_between_nodes(log: Log) -> list[Event]:
    """Return channels within a node whose ranks are not of one node: rank less device is the same on all of a node."""
    broken = [remark for remark in remarks(log, "nccl-warn") if "CUDA IPC handle" in remark.text]
    hops = [
        remark
        for remark in remarks(log, "local-hop")
        if int(remark.values["a"]) - int(remark.values["b"])
        != int(remark.values["c"]) - int(remark.values["d"])
    ]
    return [*hops[:2], *broken[:1]] if hops and broken else []


def _one_id(log: Log) -> Suspect | None:
    """Return that NCCL_HOSTID is the same on several hosts."""
    for value, setting in settings(log, "NCCL_HOSTID").items():
        hosts = tuple(dict.fromkeys(process.host for process in setting))
        if len(hosts) > 1 and troubles(log):
            return suspect(
                f"NCCL_HOSTID={value} is set on {', '.join(hosts[:3])}, so NCCL takes them for one host.",
                [
                    *(
                        as_line(process, f"NCCL_HOSTID set by environment to {value}")
                        for process in setting[:4]
                    ),
                    *troubles(log),
                ],
                at=setting[0].place,
            )
    return None
