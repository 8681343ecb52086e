"""NC306 rdma-no-device-files."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.rdma_ports import (
    Surveyed,
    has_gpus,
    not_surveyed,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot

_FOLDER = "/dev/infiniband"
_CONTAINER = Fix(
    "give the container the RDMA device files",
    (
        "docker run --device=/dev/infiniband --ulimit memlock=-1 --cap-add IPC_LOCK ...",
        "ls -l /dev/infiniband",
    ),
)
_HOST = Fix(
    "load the module that creates them, on the host", ("sudo modprobe ib_uverbs", "ls -l /dev/infiniband")
)
_RIGHTS = Fix(
    "give the job's user read and write permission (usually mode 0666, by udev)",
    ("ls -l /dev/infiniband", "id", "sudo chmod 0666 /dev/infiniband/uverbs*"),
    risk="chmod lasts until the next boot; rdma-core brings a udev rule for it",
)


@check(
    "NC306",
    "rdma-no-device-files",
    "The job can open all RDMA devices",
    needs=("rdma",),
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_no_device_files(snapshot: Snapshot) -> Iterator[Answer]:
    """Every RDMA device has a file /dev/infiniband/uverbsN that this process can read and write.

    ## Why it matters
    A container sees the host's RDMA devices in /sys, but can use only those whose device file it was given. Without
    them NCCL reports no error and uses sockets, which are often ten times slower; the EFA plug-in does the same.

    ## How to fix
    docker: `--device=/dev/infiniband`; Kubernetes: the RDMA device plug-in's resource, or `privileged`; Slurm with
    enroot or pyxis: the mellanox hook. On a bare host: `modprobe ib_uverbs`, and read and write permission for the
    job's user.

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbInit: "Unable to open device"); which file belongs to which device:
    /sys/class/infiniband_verbs/uverbsN/ibdev.
    """
    nodes = [surveyed_node for surveyed_node in surveyed(snapshot) if not surveyed_node.is_switched_off]
    yield from without_devices(surveyed(snapshot))
    if any(surveyed_node.rdma.ports for surveyed_node in surveyed(snapshot)) and not any(
        node.rdma.ports for node in nodes
    ):
        yield NotApplicable("NCCL is told not to use RDMA")
    having = [node for node in nodes if node.rdma.ports]
    for surveyed_node in having:
        yield from _unknown(surveyed_node)
    yield from _without_any(
        [surveyed_node for surveyed_node in having if surveyed_node.rdma.device_files == ()]
    )
    some = [
        surveyed_node
        for surveyed_node in having
        if not isinstance(surveyed_node.rdma.device_files, Missing) and surveyed_node.rdma.device_files
    ]
    yield from _without_some(some, snapshot)
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _unknown(node: Surveyed) -> Iterator[NotKnown]:
    rdma = node.rdma
    if isinstance(rdma.device_files, Missing):
        yield NotKnown(f"{_FOLDER}: {rdma.device_files}", (node.host,))
    elif rdma.device_files:
        unnamed = [port.device for port in rdma.ports if isinstance(port.uverbs, Missing)]
        if unnamed:
            yield NotKnown(f"which device file belongs to {listed(unnamed)}", (node.host,))
        elif isinstance(rdma.unusable_files, Missing) and rdma.unusable_files.missing != "absent":
            yield NotKnown(f"who may open the files in {_FOLDER}: {rdma.unusable_files}", (node.host,))


def _without_any(nodes: list[Surveyed]) -> Iterator[Finding]:
    groups: dict[tuple[str, bool], list[Surveyed]] = {}
    for node in nodes:
        devices = listed(port.device for port in node.rdma.ports)
        groups.setdefault((devices, has_gpus(node.facts) is not False), []).append(node)
    for (devices, has_gpu), group in groups.items():
        hosts = tuple(member.host for member in group)
        yield Finding(
            "error" if has_gpu else "warning",
            f"{named(hosts)} {verb(hosts, 'has', 'have')} the RDMA {verb(devices.split(', '), 'device', 'devices')} "
            f"{devices} in /sys, but no device file in {_FOLDER}: NCCL cannot open them and falls back to sockets "
            "without an error",
            hosts,
            (
                Evidence(
                    hosts,
                    f"uverbs files in {_FOLDER}",
                    "none",
                    "one per RDMA device",
                    f"{_FOLDER}, /sys/class/infiniband",
                ),
            ),
            (_CONTAINER, _HOST),
        )


def _without_some(nodes: list[Surveyed], snapshot: Snapshot) -> Iterator[Finding]:
    """Devices without their file, and files that may not be opened.

    A container that is given some of the host's devices has the others in /sys too, so what is missing in the same
    way on every node is a choice, and only reported.
    """
    absent: dict[tuple[str, ...], list[str]] = {}
    closed: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        named_files = {port.uverbs: port.device for port in node.rdma.ports if isinstance(port.uverbs, str)}
        files = () if isinstance(node.rdma.device_files, Missing) else node.rdma.device_files
        unusable = () if isinstance(node.rdma.unusable_files, Missing) else node.rdma.unusable_files
        missing = tuple(f"{device} ({file})" for file, device in named_files.items() if file not in files)
        denied = tuple(f"{device} ({file})" for file, device in named_files.items() if file in unusable)
        if missing:
            absent.setdefault(missing, []).append(node.host)
        if denied:
            closed.setdefault(denied, []).append(node.host)
    for names, hosts in absent.items():
        everywhere = len(snapshot.nodes) > 1 and len(hosts) == len(snapshot.nodes)
        yield _partial("warning" if everywhere else "error", names, hosts, "no device file", _CONTAINER)
    for names, hosts in closed.items():
        yield _partial("error", names, hosts, "a device file that this user may not open", _RIGHTS)


def _partial(severity: str, names: tuple[str, ...], found: list[str], what: str, fix: Fix) -> Finding:
    hosts = tuple(found)
    return Finding(
        "error" if severity == "error" else "warning",
        f"on {named(hosts)} {listed(names)} {verb(names, 'has', 'have')} {what}: NCCL skips "
        f"{verb(names, 'it', 'them')} without an error, and the job loses "
        f"{verb(names, 'its', 'their')} bandwidth",
        hosts,
        tuple(
            Evidence(hosts, name, what, "a file that can be read and written", _FOLDER) for name in names[:12]
        ),
        (fix,),
    )
