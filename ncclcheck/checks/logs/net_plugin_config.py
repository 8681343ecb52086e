"""NC930 net-plugin-config."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_BUILT_IN = ("IB", "Socket")  # these networks are no plug-ins

_FIXES = (
    Fix(
        "check the plug-in's version and provider: FI_PROVIDER, NCCL_NET_PLUGIN, libfabric / aws-ofi- "
        "nccl, HPC-X; for SHARP unset NCCL_COLLNET_ENABLE or start sharp_am",
        (
            "fi_info -p efa",
            "NCCL_NET_PLUGIN=none NCCL_DEBUG=INFO ...   # is the job fine without it?",
            "ncclcheck preflight --select plugin-missing",
        ),
    ),
)


@cause("NC930", "net-plugin-config", "The network plug-in could be used")
def net_plugin_config(log: Log) -> Iterator[Suspect]:
    """A network plug-in (libfabric, SHARP, UCX, a cloud's own) was asked for and does not work as it is set up.

    ## Why it matters
    NCCL was told to use it and cannot, so it fails; or it falls back to slow sockets.

    ## How to fix
    Make plug-in, libfabric or HPC-X, and driver fit each other, give the container the devices, or stop asking
    for the plug-in.

    ## Source
    NCCL plugin/net.cc, aws-ofi-nccl, NVIDIA nccl-rdma-sharp-plugins.
    """
    found = [
        remark
        for remark in remarks(
            log, "plugin-provider", "plugin-network", "plugin-sharp", "plugin-ucx", "plugin-load"
        )
        if "NCCL INFO" not in remark.text and remark.values.get("network") not in _BUILT_IN
    ]
    if found:
        yield suspect(
            "A network plug-in that the job asks for cannot be used as it is configured.",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
            explains=("rdma-userspace-missing", "rank-exception", "ib-hca-selection"),
            fixes=_FIXES,
        )
