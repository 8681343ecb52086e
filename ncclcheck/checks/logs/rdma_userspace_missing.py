"""NC934 rdma-userspace-missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, uses_infiniband
from ncclcheck.checks.logs._view import culprits, remarks, troubles
from ncclcheck.checks.logs._works import unopened
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_NO_NETWORK = "Failed to initialize any NET plugin"


_IPOIB = re.compile(r"ib\d|ibp\d|ibs\d")  # as the kernel names interfaces of InfiniBand


@cause(
    "NC934",
    "rdma-userspace-missing",
    "The job cannot use the node's RDMA hardware",
    explains=("slow-rank-timeout", "ib-hca-selection", "net-plugin-config"),
    fixes=(
        Fix(
            "install rdma-core (libibverbs1, ibverbs-providers) in the image and pass /dev/infiniband into "
            "the container",
            (
                "ldconfig -p | grep ibverbs; ls /dev/infiniband; ibv_devinfo",
                "ncclcheck preflight --select rdma-ignored,rdma-no-device-files",
            ),
        ),
    ),
)
def rdma_userspace_missing(log: Log) -> Iterator[Suspect]:
    """The node has RDMA hardware, but the container lacks the verbs library, its driver, or the device files.

    ## Why it matters
    NCCL then uses sockets, five to fifty times slower, or finds another network than its peers.

    ## How to fix
    Put rdma-core (libibverbs and its providers) into the image and give the container /dev/infiniband.

    ## Source
    NCCL misc/ibvsymbols.cc (dlopen of libibverbs.so.1); rdma-core's warnings; /dev/infiniband/uverbs*.
    """
    closed = unopened(log)
    missing = [*remarks(log, "no-libibverbs", "no-rdma-driver", "no-rdma-device-files"), *closed]
    listed = remarks(log, "rdma-listed")
    hardware = [*remarks(log, "ib-active", "rdma-hardware", "rdma-wanted"), *listed, *_over_ipoib(log)]
    slow = remarks(log, "slow-word")
    stopped = [warning for warning in remarks(log, "nccl-warn") if _NO_NETWORK in warning.text]
    if (
        missing
        and (hardware or uses_infiniband(log))
        and (troubles(log) or slow or closed or listed or _over_ipoib(log))
    ):
        yield suspect(
            "The node has RDMA hardware, but not its user-space part (libibverbs, provider or device files), "
            + ("and the job allows no sockets." if stopped else "so NCCL uses sockets."),
            [*missing, *hardware, *slow, *stopped],
            confidence="certain" if stopped else "likely",
            hosts=culprits(log, [remark.place for remark in missing]),
        )


def _over_ipoib(log: Log) -> list[Remark]:
    """Return what several hosts say that use InfiniBand's own interfaces as sockets, and no device of it."""
    found = {
        process.host: as_line(process, f"Using {socket}")
        for process in log.processes
        if not process.devices
        for socket in process.sockets
        if _IPOIB.match(socket)
    }
    return list(found.values()) if len(found) > 1 else []
