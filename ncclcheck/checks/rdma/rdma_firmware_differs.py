"""NC309 rdma-firmware-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.rdma_ports import surveyed, without_devices
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC309",
    "rdma-firmware-differs",
    "RDMA cards of one model have the same firmware on all nodes",
    needs=("rdma",),
    nodes=2,
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_firmware_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Cards of one model (board id) have one firmware version, on a node and between nodes. EFA shows none.

    ## Why it matters
    Old firmware has known defects: links that flap or come up slower, RoCE settings that are missing. A node that was
    left out of an update also behaves differently.

    ## How to fix
    Update the cards to the version of the others with the vendor's tool (`mlxfwmanager`, `flint`), and restart the
    node.

    ## Source
    /sys/class/infiniband/*/fw_ver and board_id.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    versions: dict[str, list[tuple[str, str]]] = {}
    devices: dict[str, dict[str, None]] = {}
    for node in nodes:
        cards = {port.device: port for port in node.rdma.ports if port.driver != "efa"}
        unknown = [name for name, port in cards.items() if _is_unknown(port)]
        if unknown:
            yield NotKnown(f"model or firmware of {listed(unknown)} could not be read", (node.host,))
        for name, port in cards.items():
            if isinstance(port.board_id, str) and isinstance(port.firmware, str):
                versions.setdefault(port.board_id, []).append((node.host, port.firmware))
                devices.setdefault(port.board_id, {})[name] = None
    if any(surveyed_node.rdma.ports for surveyed_node in nodes) and not any(
        port.driver != "efa" for surveyed_node in nodes for port in surveyed_node.rdma.ports
    ):
        yield NotApplicable("EFA shows no firmware version")
    for board, version in versions.items():
        comparison = compare(_by_host(version))
        if comparison.differs:
            yield _finding(board, comparison, listed(devices[board]))
    yield from not_reported(snapshot)


def _is_unknown(port: RdmaPort) -> bool:
    return isinstance(port.board_id, Missing) or isinstance(port.firmware, Missing)


def _by_host(named_ports: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The versions of every host in one value: `28.39.1002`, or `28.39.1002 and 28.40.1000`."""
    found: dict[str, dict[str, None]] = {}
    for host, version in named_ports:
        found.setdefault(host, {})[version] = None
    return [(host, " and ".join(sorted(versions))) for host, versions in found.items()]


def _finding(board: str, comparison: HostComparison[str], devices: str) -> Finding:
    return Finding(
        "warning",
        f"the firmware of RDMA cards of one model ({board}: {devices}) differs: "
        f"{sentence(comparison)}: nodes with different firmware may behave differently",
        comparison.odd_hosts,
        evidence(comparison, f"firmware of {devices}", "/sys/class/infiniband/*/fw_ver"),
        (
            Fix(
                "update all cards of a model to the same version",
                ("grep . /sys/class/infiniband/*/fw_ver", "sudo mlxfwmanager --query"),
            ),
        ),
    )
