"""NC930 net-plugin-config."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC930",
    "net-plugin-config",
    "The network plug-in worked",
    topics=("plugin-provider", "plugin-network", "plugin-sharp", "plugin-ucx", "plugin-load"),
    summary="The network plug-in that the job asks for does not work as it is configured.",
    unless="NCCL INFO|network (?:IB|Socket) not found",  # these two networks are built in
    explains=("rdma-userspace-missing", "rank-exception", "ib-hca-selection"),
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
def net_plugin_config(log: Log) -> None:
    """A network plug-in (libfabric, SHARP, UCX, a cloud's own) was asked for and does not work as it is set up.

    ## Why it matters
    NCCL cannot use it, so it fails or falls back to slow sockets.

    ## How to fix
    Make plug-in, libfabric or HPC-X, and driver fit each other, give the container the devices, or stop asking
    for the plug-in.

    ## Source
    NCCL plugin/net.cc, aws-ofi-nccl, NVIDIA nccl-rdma-sharp-plugins.
    """
