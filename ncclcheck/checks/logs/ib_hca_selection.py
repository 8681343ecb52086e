"""NC932 ib-hca-selection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, chosen_apart, rails_apart
from ncclcheck.checks.logs._reruns import helped
from ncclcheck.checks.logs._view import remarks, settings, troubles
from ncclcheck.model.events import Log, Process, Remark
from ncclcheck.model.finding import Fix

_NO_WAY = re.compile(r"\b(?:22|101|110|113)\b|Invalid argument|timed out|unreachable|No route", re.IGNORECASE)


@cause(
    "NC932",
    "ib-hca-selection",
    "The nodes use different RDMA adapters",
    explains=("rank-exception", "ib-link-or-fabric", "rdma-userspace-missing"),
    between_nodes=True,
    fixes=(
        Fix(
            "select the same adapters on all nodes with NCCL_IB_HCA (exact form =mlx5_0,mlx5_1), without "
            "storage and management cards",
            (
                "ibstat -l   # on every node",
                "ncclcheck preflight --select rdma-count-differs,link-layer-mixed,rdma-ignored",
            ),
        ),
    ),
)
def ib_hca_selection(log: Log) -> Iterator[Suspect]:
    """The nodes use different sets of RDMA adapters, or adapters that are not connected to each other.

    ## Why it matters
    NCCL pairs adapters by order. With another set on a node it connects different networks, or sockets with InfiniBand.

    ## How to fix
    Name the adapters of the compute fabric in NCCL_IB_HCA, the same on all nodes.

    ## Source
    NCCL transport/net_ib: NCCL_IB_HCA; 2.26 `incompatible devices`; 2.30 `Detected mixed local Net device counts`.
    """
    incompatible = remarks(log, "ib-incompatible")
    odd = _odd(log)
    if chosen := _chosen_well(log):
        yield chosen
    elif incompatible:
        yield suspect(
            "The nodes use RDMA adapters that are not compatible with each other.",
            [*incompatible, *odd],
            hosts=tuple(dict.fromkeys(remark.place.host for remark in odd if remark.place.host)),
        )
    elif apart := [
        remark for remark in remarks(log, "ib-modify-qp", "ib-completion") if rails_apart(remark.text)
    ]:
        what = "A queue pair between adapters of different networks timed out: the rails are not connected. "
        yield suspect(
            what + "NCCL_CROSS_NIC=0 keeps each adapter on its own rail.", apart, confidence="likely"
        )
    elif (of_two := _of_two_link_layers(log)) and _unreachable(log):
        yield _of_two_networks(log, of_two)
    elif chosen_apart(log, setup := remarks(log, "ib-modify-qp")):
        what = "One of the adapters that NCCL_IB_HCA names has no route to the peer's: they are of different networks."
        yield suspect(what, setup, confidence="likely")
    elif (apart_here := _chosen_per_process(log)) and troubles(log):
        yield _apart_on_a_node(apart_here)
    elif odd and _of_two_makes(log) and troubles(log):
        yield suspect(
            "The nodes use different RDMA adapters, some of them of two makes, which are hardly of one network.",
            odd,
            confidence="likely",
            hosts=tuple(dict.fromkeys(remark.place.host for remark in odd if remark.place.host)),
            explains=("ib-link-or-fabric", "roce-gid", "slow-rank-timeout"),
        )
    elif odd and troubles(log):
        networks = {process.network for process in log.processes if process.network}
        mixed = len(networks) > 1
        lost = [remark for remark in remarks(log, "nccl-warn") if "Unable to open device" in remark.text]
        is_forced = bool(settings(log, "NCCL_IGNORE_NET_MISMATCH"))
        yield suspect(
            "The nodes do not use the same RDMA adapters"
            + (f": some use {' and others '.join(sorted(networks))}." if mixed else "."),
            [*odd, *lost],
            confidence="likely" if mixed or lost or is_forced else "possible",
            hosts=tuple(dict.fromkeys(remark.place.host for remark in odd if remark.place.host)),
            explains=("slow-rank-timeout", "firewall-blocked-ports", "nccl-version-mismatch")
            if mixed or lost
            else (),
        )


def _chosen_well(log: Log) -> Suspect | None:
    """Return that a later command ended well with another choice of adapters."""
    better = helped(log, "NCCL_IB_HCA")
    if not better or not remarks(log, "ib-completion", "ib-modify-qp"):
        return None
    return suspect(
        "The job failed over one of the adapters, and ended well with another choice of them (NCCL_IB_HCA): an "
        "adapter of another network was among them.",
        better,
        confidence="likely",
        hosts=(),
        explains=("rank-exception", "ib-link-or-fabric", "rdma-userspace-missing", "roce-gid"),
    )


def _of_two_networks(log: Log, of_two: Sequence[Remark]) -> Suspect:
    """Return that NCCL pairs adapters of InfiniBand with adapters of Ethernet."""
    return suspect(
        "NCCL uses adapters of InfiniBand and of Ethernet (RoCE) as if they were of one network, and a queue pair "
        "between two of them cannot be set up. NCCL_IB_HCA selects those of one network.",
        [*of_two, *_unreachable(log)],
        confidence="likely",
        hosts=(),
        explains=("roce-gid", "ib-link-or-fabric", "rank-exception", "firewall-blocked-ports"),
    )


def _apart_on_a_node(apart_here: Sequence[Remark]) -> Suspect:
    """Return that the processes of a node see different adapters."""
    return suspect(
        "The processes of one node have different values of NCCL_IB_HCA: each rank then sees another set of "
        "adapters, and NCCL's rings do not fit together.",
        apart_here,
        confidence="likely",
        hosts=tuple(dict.fromkeys(line.place.host for line in apart_here if line.place.host)),
        explains=("nccl-or-driver-bug", "slow-rank-timeout"),
    )


def _chosen_per_process(log: Log) -> list[Remark]:
    """Return the settings of NCCL_IB_HCA of a host whose processes do not have the same one."""
    chosen: dict[str, dict[str, Process]] = {}
    for value, processes in settings(log, "NCCL_IB_HCA").items():
        for process in processes:
            chosen.setdefault(process.host, {})[value] = process
    return [
        as_line(process, f"NCCL_IB_HCA={value}")
        for values in chosen.values()
        if len(values) > 1
        for value, process in values.items()
    ]


def _odd(log: Log) -> list[Remark]:
    """The device lines of the hosts whose list is not the commonest; else of those without rank 0."""
    lists = {process.host: process for process in log.processes if process.network}
    for process in log.processes:
        if process.devices:
            lists[process.host] = process
    kinds: dict[tuple[str, ...], list[Process]] = {}
    for process in lists.values():
        kinds.setdefault(process.devices, []).append(process)
    if len(kinds) < 2:  # noqa: PLR2004
        return []
    first = log.hosts_of_ranks.get(0)
    most = max(
        kinds.values(),
        key=lambda kind: (len(kind), bool(kind[0].devices), any(process.host == first for process in kind)),
    )
    return [
        as_line(process, f"uses {', '.join(process.devices) or process.network or 'no RDMA device'}")
        for kind in kinds.values()
        if kind is not most
        for process in kind
    ]


def _unreachable(log: Log) -> list[Remark]:
    """Return the queue pairs that could not be set up for want of a way to the other end."""
    return [
        remark for remark in remarks(log, "ib-modify-qp") if _NO_WAY.search(remark.values.get("error", ""))
    ]


def _of_two_link_layers(log: Log) -> list[Remark]:
    """Return the processes that use adapters of both link layers (`mlx5_0:1/IB`, `mlx5_2:1/RoCE`)."""
    return [
        as_line(process, f"uses {', '.join(process.devices)}")
        for process in log.processes
        if {device.rpartition("/")[2].partition(" ")[0] for device in process.devices} >= {"IB", "RoCE"}
    ]


def _of_two_makes(log: Log) -> bool:
    """Return True if a process uses adapters whose names say that their drivers differ (`mlx5_0`, `i40iw0`)."""
    return any(
        len({re.sub(r"[\d_:].*", "", device) for device in process.devices}) > 1 for process in log.processes
    )
