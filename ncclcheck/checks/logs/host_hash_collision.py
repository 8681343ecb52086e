"""NC921 host-hash-collision."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line
from ncclcheck.checks.logs._view import remarks, settings, troubles
from ncclcheck.model.events import Event, Log
from ncclcheck.model.finding import Fix


@cause(
    "NC921",
    "host-hash-collision",
    "NCCL told all hosts apart",
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
    Give every machine a host name of its own, or set NCCL_HOSTID differently on each.

    ## Source
    NCCL misc/utils.cc getHostHash (host name up to the first dot and boot_id; NCCL_HOSTID).
    """
    for value, setting in settings(log, "NCCL_HOSTID").items():
        hosts = tuple(dict.fromkeys(process.host for process in setting))
        if len(hosts) > 1 and troubles(log):
            yield suspect(
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
            return
    by_host: dict[str, set[str]] = {}
    for process in log.processes:
        if process.host and process.address:
            by_host.setdefault(process.host, set()).add(process.address.partition("%")[0])
    alike = {
        host: addresses
        for host, addresses in by_host.items()
        if len(addresses) > 1 and _is_one_interface(log, host)
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
        confidence="certain" if complaints else "likely",
        at=log.processes[0].place,
    )


def _is_one_interface(log: Log, host: str) -> bool:
    """True if the addresses stand on an interface of one name: on one machine that would be one address."""
    pairs = {
        (process.interface, process.address)
        for process in log.processes
        if process.host == host and process.address
    }
    names = [name for name, _ in pairs]
    return len(names) > len(set(names))
