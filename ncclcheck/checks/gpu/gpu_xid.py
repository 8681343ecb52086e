"""NC405 gpu-xid."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import by_text, no_driver
from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.xid import Demand, sxid_demand, xid_demand
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.gpu import LoggedError
from ncclcheck.model.snapshot import Node, Snapshot

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_LOOK = ("dmesg -T | grep -i xid", "journalctl -k -b | grep -i xid")
_WORDS: dict[Demand | None, str] = {
    "reset": "the GPU must be reset",
    "reboot": "the node must be rebooted",
    "look": "the hardware must be inspected",
    "application": "the error ended a program",
    None: "NVIDIA's catalogue did not list it when this version of ncclcheck was made",
}


@check("NC405", "gpu-xid", "The kernel log has no GPU errors that need a reset, a reboot or a repair")
def gpu_xid(snapshot: Snapshot) -> Iterator[Answer]:
    """Since boot, the kernel logged no Xid (GPU) or SXid (NVSwitch) error that needs a reset, a reboot or a repair.

    Errors that end one program (13, 31, 94 ...) are information. Errors that NVIDIA says to ignore are not reported.
    An unknown error is a warning. If the driver now says that the GPU needs no recovery, an older error is a warning
    too: it was probably handled.

    ## Why it matters
    The driver logs what a job only sees as a hang or "unspecified launch failure". A GPU that fell off the bus (79) or
    had an uncontained memory error (95) will not recover without a reset.

    ## How to fix
    Follow the fix in the finding, and leave the node out of the job until then.

    ## Source
    /dev/kmsg, or journalctl; NVIDIA's Xid catalogue (immediate action); Fabric Manager User Guide, appendix on SXid
    errors: fatal ones need a reset of all GPUs and NVSwitches, a few of the others a restart or a look. The log needs a
    right that users often lack: then this is unknown, not passed.
    """
    without = no_driver(snapshot)
    found: dict[tuple[Severity, Demand | None], list[tuple[str, str]]] = {}
    judged = False
    for node in snapshot.nodes:
        log = node.facts.gpu_log
        if isinstance(log, Missing):
            if len(without) < len(snapshot.nodes) or node.host not in without:
                yield NotKnown(f"kernel log: {log}", (node.host,))
            continue
        judged = judged or node.host not in without or bool(log.errors)
        for error in log.errors:
            demand = _demand(error)
            if demand != "nothing":
                key = _severity(demand, node, error), demand
                found.setdefault(key, []).append((node.host, _named(error)))
    for (severity, demand), members in found.items():
        for text, hosts in by_text(members):
            yield Finding(
                severity,
                f"{named(hosts)}: the driver logged {text}: {_WORDS[demand]}",
                hosts,
                (Evidence(hosts, "GPU errors", text, "none", "kernel log; NVIDIA's Xid catalogue"),),
                (Fix(f"{_WORDS[demand]}; read the rest of the kernel log", _LOOK),),
            )
    yield from not_reported(snapshot)
    if not judged:
        yield NotApplicable("no node has an NVIDIA driver")


def _demand(error: LoggedError) -> Demand | None:
    return (
        sxid_demand(error.number, error.text)
        if error.kind == "SXid"
        else xid_demand(error.number, error.text)
    )


def _severity(demand: Demand | None, node: Node, error: LoggedError) -> Severity:
    if demand == "application":
        return "info"
    if demand is None or demand == "look":
        return "warning"
    return "warning" if _is_recovered(node, error.pci) else "error"


def _is_recovered(node: Node, address: str) -> bool:
    """Does the driver say that this very GPU is listed and needs no recovery?"""
    gpus = node.facts.gpus
    if isinstance(gpus, Missing) or not address:
        return False
    return any(gpu.pci == address and gpu.state.recovery_action == "none" for gpu in gpus)


def _named(error: LoggedError) -> str:
    """`Xid 79 of 0000:1b:00.0, 5 min ago, "GPU has fallen off the bus"`."""
    where = f" of {error.pci}" if error.pci else ""
    often = f", {error.times} times" if error.times > 1 else ""
    words = error.text.rpartition(f"): {error.number}")[2].strip(" ,.")
    return f"{error.kind} {error.number}{where}{often}, {_ago(error.seconds_ago)} ago ({words})"


def _ago(seconds: float) -> str:
    if seconds < _HOUR_S:
        return f"{max(1, round(seconds / _MINUTE_S))} min"
    return f"{seconds / _HOUR_S:.0f} h" if seconds < 2 * _DAY_S else f"{seconds / _DAY_S:.0f} days"
