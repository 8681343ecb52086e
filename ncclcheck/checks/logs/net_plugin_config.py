"""NC930 net-plugin-config."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, distinct_hosts, only_sockets
from ncclcheck.checks.logs._view import culprits, failures, remarks, troubles
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Log, Process
from ncclcheck.model.finding import Fix

_TOPICS = ("plugin-provider", "plugin-network", "plugin-sharp", "plugin-ucx", "plugin-load")
_BUILT_IN = re.compile("NCCL INFO|network (?:IB|Socket) not found")  # these two networks are built in

_UNLOADABLE = re.compile(
    r"libnccl-net\S*: \S{1,200}: version `"
)  # what it is linked to is of another version
_OF_TOPOLOGY = ("topology-file", "topology-attribute")
_OWN_NETWORKS = ("IB", "Socket")


@cause(
    "NC930",
    "net-plugin-config",
    "The network plug-in does not work as configured",
    explains=("rdma-userspace-missing", "rank-exception", "ib-hca-selection", "stale-config"),
    fixes=(
        Fix(
            "check the plug-in's version and provider: FI_PROVIDER, NCCL_NET_PLUGIN, libfabric / aws-ofi- "
            "nccl, HPC-X; for SHARP unset NCCL_COLLNET_ENABLE or start sharp_am",
            (
                "fi_info -p efa",
                "NCCL_NET_PLUGIN=none NCCL_DEBUG=INFO ...   # does the job work without it?",
                "ncclcheck preflight --select plugin-missing",
            ),
        ),
    ),
)
def net_plugin_config(log: Log) -> Iterator[Suspect]:
    """A network plug-in (libfabric, SHARP, UCX, a cloud's own) was asked for and does not work as it is set up.

    ## Why it matters
    NCCL cannot use it, so it fails or falls back to slow sockets.

    ## How to fix
    Make plug-in, libfabric or HPC-X, and driver fit each other, give the container the devices, or stop asking
    for the plug-in.

    ## Source
    NCCL plugin/net.cc, aws-ofi-nccl, NVIDIA nccl-rdma-sharp-plugins.
    """
    found = [
        remark
        for remark in remarks(log, *_TOPICS)
        if not _BUILT_IN.search(remark.text) or _UNLOADABLE.search(remark.text)
    ]
    if found:
        yield suspect(
            "The network plug-in that the job asks for does not work as it is configured.",
            found,
            confidence="likely" if remarks(log, "ib-no-memory") or _failed_on_sockets(log) else "certain",
            hosts=culprits(log, [remark.place for remark in found]),
            explains=("rdma-userspace-missing", "rank-exception", "ib-hca-selection"),
        )
        return
    sides = _on_one_side(log)
    if sides and (troubles(log) or not shows_work(log)):
        yield suspect(
            f"Some nodes use the network plug-in ({sides[0].network}) and others NCCL's own network "
            f"({sides[-1].network}): the plug-in is missing there, or is not found.",
            [as_line(process, f"Using network {process.network}") for process in sides],
            confidence="likely",
            hosts=distinct_hosts(sides),
        )
        return
    unusable_topology = remarks(log, "plugin-topology")
    unread = [remark for remark in remarks(log, "nccl-warn") if remark.values.get("group") in _OF_TOPOLOGY]
    if unusable_topology and unread:
        yield suspect(
            "The network plug-in gave NCCL a topology file that this NCCL cannot read.",
            [*unusable_topology, *unread],
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in unread[:1]]),
        )


def _failed_on_sockets(log: Log) -> bool:
    """Return True if NCCL went on with its own sockets, and a connection over these failed for good."""
    on_sockets = only_sockets(log)
    return on_sockets and any(failure.final for failure in failures(log, "nccl"))


def _on_one_side(log: Log) -> list[Process]:
    """Return a process with a plug-in's network and one of another host with NCCL's own, where the job has both."""
    by_host = {process.host: process for process in log.processes if process.network}
    built_in = [process for process in by_host.values() if process.network in _OWN_NETWORKS]
    plugged_in = [process for process in by_host.values() if process.network not in _OWN_NETWORKS]
    return [plugged_in[0], built_in[0]] if built_in and plugged_in else []
