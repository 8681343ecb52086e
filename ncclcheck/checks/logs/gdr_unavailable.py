"""NC935 gdr-unavailable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, without_gpudirect
from ncclcheck.checks.logs._view import alarms, culprits, remarks, troubles
from ncclcheck.checks.logs._works import slowness
from ncclcheck.logs.messages.ib_status import status_of
from ncclcheck.logs.used import reports_channels, unreachable_gpus
from ncclcheck.model.events import Log, Process, Remark
from ncclcheck.model.finding import Fix


@cause(
    "NC935",
    "gdr-unavailable",
    "GPUDirect RDMA is off or fails",
    explains=("rank-exception", "rdma-userspace-missing", "slow-rank-timeout"),
    between_nodes=True,
    fixes=(
        Fix(
            "load nvidia_peermem (modprobe nvidia_peermem) or use DMA-BUF with the open kernel modules; see "
            "NCCL_NET_GDR_LEVEL",
            (
                "lsmod | grep peermem",
                "ncclcheck preflight --select gdr-unavailable,pcie-acs",
            ),
        ),
    ),
)
def gdr_unavailable(log: Log) -> Iterator[Suspect]:
    """GPUDirect RDMA is off or fails: the adapter cannot read GPU memory, so all data goes through host memory.

    ## Why it matters
    Bandwidth between nodes falls to a fraction, and registering GPU memory may fail.

    ## How to fix
    Load nvidia_peermem, or use the open kernel modules with DMA-BUF; check the distance between GPU and
    adapter.

    A line `GPU Direct RDMA Disabled for GPU 1b000 / HCA 2 (distance 7 > 4)` alone means nothing: NCCL asks it of
    every adapter, also of those that the GPU does not use. What counts is whether the channels end in /GDRDMA.

    ## Source
    NCCL graph/topo (`GPU Direct RDMA Disabled for HCA`), graph/paths (ncclTopoCheckGdr); 2.13 and newer take
    DMA-BUF, older nv_peer_mem or nvidia_peermem.
    """
    off = [process for process in log.processes if unreachable_gpus(process)]
    lines = [as_line(process, f"GPU Direct RDMA {unreachable_gpus(process)[0]}") for process in off[:4]]
    reports = remarks(log, "gdr-missing", "ib-register-gpu")
    kept_away = [
        remark
        for remark in remarks(log, "ib-completion")
        if (status := status_of(remark.values.get("status", ""))) and status.cause == "gdr-unavailable"
    ]
    slow = (*slowness(log), *_looked_for(log))
    disabled = remarks(log, "gdr-disabled") if slow and not reports_channels(log) else ()
    if (reports and troubles(log)) or ((off or disabled) and slow):
        yield suspect(
            "GPUDirect RDMA is not available: data between GPUs of different nodes goes through host memory.",
            [*reports, *lines, *disabled, *slow],
            confidence="likely",
            at=(reports or lines or disabled)[0].place,
            hosts=culprits(log, [remark.place for remark in reports] + [process.place for process in off])
            if not slow
            else (),
        )
    elif (lacking := without_gpudirect(log)) and not alarms(log):
        yield _on_one_host_only(log, lacking)
    elif kept_away:
        number = kept_away[0].values["status"]
        status = status_of(number)
        yield suspect(
            f"An RDMA request failed with status {number}: {status.means if status else ''}. ACS on the PCIe bridges "
            "is the usual reason; NCCL_NET_GDR_LEVEL=0 shows whether it is that.",
            kept_away,
            confidence="likely" if number != "10" or _blames_acs(log) else "possible",
        )
    elif off and troubles(log):
        yield suspect(
            "GPUDirect RDMA is off on at least one node; the job is slower, but this does not end it.",
            lines,
            confidence="possible",
            explains=(),
        )


def _on_one_host_only(log: Log, lacking: Sequence[Process]) -> Suspect:
    return suspect(
        "GPUDirect RDMA is used on one host and not on another: the channels of the first end in /GDRDMA. Data "
        "between them goes through host memory at one end.",
        [_channel(process) for process in lacking[:4]],
        confidence="likely",
        hosts=culprits(log, [process.place for process in lacking]),
    )


def _channel(process: Process) -> Remark:
    """Return the first of its channels to another host, as evidence."""
    link = next(link for link in process.links if link.via.startswith("NET/IB"))
    return as_line(process, f"{link.source} -> {link.target} via {link.via}")


def _blames_acs(log: Log) -> bool:
    """Return True if NCCL's own hint names ACS."""
    return any("ACS" in remark.text for remark in remarks(log, "nccl-hint"))


def _looked_for(log: Log) -> list[Remark]:
    """Return that a person looked for the module that gives adapters access to GPU memory, and it is not there."""
    return [
        remark
        for remark in remarks(log, "missing-file", "gdr-missing")
        if "memory_peers" in remark.text or "peermem" in remark.text
    ]
