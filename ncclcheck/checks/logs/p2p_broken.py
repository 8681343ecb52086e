"""NC923 p2p-broken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import P2P_OFF, as_line, is_without_p2p
from ncclcheck.checks.logs._reruns import interrupts, run_of, typed
from ncclcheck.checks.logs._view import (
    alarms,
    culprits,
    exceptions,
    exits,
    remarks,
    statuses,
    timeouts,
    troubles,
)
from ncclcheck.checks.logs._works import ends_of_job, launched, successes, went_on_after
from ncclcheck.model.events import (
    CommInit,
    Event,
    Log,
    Process,
    PythonException,
    Remark,
    WorkerExit,
)
from ncclcheck.model.finding import Fix

# Drivers 520 to 525 said that these could (NVIDIA's forum, "Standard nVidia CUDA tests fail with dual RTX 4090")
_NO_PEERS = re.compile(r"GeForce RTX 40\d\d")
_IN_P2P = re.compile(
    r"transport/p2p\.cc:\d{1,5} (?:\(\w{1,60}\) )?NCCL WARN "
    r"(?:Cuda failure (?!.{0,8}out of memory)|hipIpc\w{3,30} failed)"
)
# NCCL gives a pair of GPUs as a rule two or four channels over PCIe, and eight or more over NVLink (graph/search.cc)
_MOST_OVER_PCIE = 4
_BY_TIMEOUT = (124, -9)  # of timeout(1): by itself, or with -s KILL


@cause(
    "NC923",
    "p2p-broken",
    "GPUs cannot use peer-to-peer access",
    explains=("slow-rank-timeout", "rank-exception", "collective-mismatch"),
    fixes=(
        Fix(
            "test with NCCL_P2P_DISABLE=1; if that helps, disable ACS on the PCIe bridges, set the "
            "IOMMU to pass-through (iommu=pt) or off, and check with p2pBandwidthLatencyTest",
            (
                "sudo lspci -vvv | grep ACSCtl",
                "nvidia-smi topo -p2p r",
                "ncclcheck preflight --select pcie-acs",
            ),
        ),
    ),
)
def p2p_broken(log: Log) -> Iterator[Suspect]:
    """GPUs of one node cannot access each other directly: ACS, IOMMU, driver or too many peers.

    ## Why it matters
    Start-up works, but the first collective never ends, or its data is wrong.

    ## How to fix
    Disable ACS on the bridges, set the IOMMU to pass-through (iommu=pt) or off, or tell NCCL not to use peer-to-peer
    access with NCCL_P2P_DISABLE=1, which is slower.

    ## Source
    NCCL transport/p2p.cc; NVIDIA's troubleshooting guide on PCI ACS; CUDA's cudaErrorPeerAccessUnsupported.
    """
    disabled = remarks(log, "p2p-disabled")
    acs, faults = remarks(log, "acs"), remarks(log, "iommu-fault")
    late = timeouts(log)
    if disabled or faults:
        lines = [*disabled, *faults, *acs, *late[:2]]
        yield suspect(
            "Direct access between GPUs (PCIe peer-to-peer) does not work.",
            lines,
            confidence="certain" if disabled else "likely",
            hosts=culprits(
                log,
                [fault.place for fault in (disabled or faults)]
                + [timeout.place for timeout in late if timeout.place.host],
            ),
        )
    elif refused := [remark for remark in remarks(log, "nccl-warn") if _IN_P2P.search(remark.text)]:
        yield _rejected(log, refused)
    elif helped := _ran_without(log):
        yield suspect(
            f"The command did not end by itself, and the same one with {helped.values['setting']} ended well: what "
            "differs is direct access between GPUs.",
            [*exits(log), *remarks(log, "trouble-word")[:1], helped, *acs],
            confidence="likely",
        )
    elif off := _later_without(log):
        yield _worked_without(log, off)
    elif _uses_pcie(log):
        yield from _hangs_over_pcie(log, acs)


def _hangs_over_pcie(log: Log, acs: Sequence[Remark]) -> Iterator[Suspect]:
    """Yield that a job of one host, whose GPUs talk over PCIe, hangs, by what else the log shows."""
    late = timeouts(log)
    if late:
        if _is_first_collective(log):
            yield suspect(
                "The first collective between GPUs of one node, over PCIe peer-to-peer, never ended.",
                [*acs, *late],
                confidence="likely" if acs else "possible",
                hosts=culprits(log, [timeout.place for timeout in late]),
                explains=("slow-rank-timeout",) if acs else (),
            )
    elif acs and _only_hangs(log):
        yield suspect(
            "The job hangs, its GPUs talk over PCIe peer-to-peer, and ACS or the IOMMU is on.",
            [*acs, *troubles(log)[:2]],
            confidence="likely",
        )
    elif _only_hangs(log) and (table := _without_peer_access(log)):
        yield suspect(
            "The job hangs, its GPUs talk over PCIe peer-to-peer, and GPUs of this kind cannot: some drivers say that "
            "they can.",
            [*table[:2], *troubles(log)[:2]],
            confidence="likely",
        )
    elif stop := _stopped_after_start(log):
        yield suspect(
            "NCCL was ready, its GPUs talk over PCIe peer-to-peer, and the job did nothing more until it was stopped: "
            "its first collective hung.",
            stop,
            confidence="likely" if _is_over_pcie_alone(log) else "possible",
            hosts=culprits(log, [event.place for event in stop[:1]]),
        )


def _rejected(log: Log, refused: Sequence[Remark]) -> Suspect:
    """Return that CUDA rejected a call of NCCL's direct transport."""
    return suspect(
        "CUDA rejected what NCCL does to reach another GPU of this host directly (transport/p2p.cc).",
        refused,
        confidence="likely",
        hosts=culprits(log, [remark.place for remark in refused[:1]]),
    )


def _only_hangs(log: Log) -> bool:
    """Return True if the job did not go on, and nothing says that more is wrong than that."""
    return bool(troubles(log)) and all(
        isinstance(event, Remark) and (event.topic == "hang" or event.values.get("group") == "engine-hang")
        for event in alarms(log)
    )


def _without_peer_access(log: Log) -> list[Remark]:
    """Return the GPUs that nccl-tests lists and that have no peer-to-peer access."""
    return [remark for remark in remarks(log, "rank-place") if _NO_PEERS.search(remark.text)]


def _stopped_after_start(log: Log) -> tuple[Event, ...]:
    """Return the last communicator that was complete and how the job was stopped, if the log shows nothing else.

    No work, end or word of the program may stand in it: those may tell why it was stopped, or that it had worked.
    """
    if len(log.files) != 1 or any(log.works.values()) or ends_of_job(log) or successes(log):
        return ()
    ready = [event for event in log.events if isinstance(event, CommInit)]
    if not ready or ready[-1].stage != "complete":
        return ()
    last = ready[-1].place.line
    stop = next((event for event in log.events if event.place.line > last and _is_stop(event)), None)
    if stop is None or run_of(log, stop.place.line) != run_of(log, last):
        return ()
    until = stop.place.line
    between = any(last < line.place.line < until for line in (*log.news, *alarms(log)))
    return () if between else (ready[-1], stop)


def _is_over_pcie_alone(log: Log) -> bool:
    """Return True if NCCL prints how many channels it has, and over NVLink it would have more."""
    channels = [process.channels for process in log.processes if process.channels]
    return bool(channels) and max(channels) <= _MOST_OVER_PCIE


def _is_stop(event: Event) -> bool:
    """Return True if a person or timeout(1) stopped the job there."""
    if isinstance(event, WorkerExit):
        return event.exit_code in _BY_TIMEOUT
    return event.text.startswith("^C") or event.text.strip() == "Terminated"


def _ran_without(log: Log) -> Remark | None:
    """Return the command that switched P2P off and ended well, where one before it had to be stopped."""
    ended = [event for event in log.events if isinstance(event, WorkerExit)]
    hung = remarks(log, "trouble-word")
    finished = remarks(log, "finished", "succeeded")
    for workaround in remarks(log, "workaround"):
        if "P2P" in workaround.values["setting"] and _hung_later_without(log, workaround):
            return workaround
        before = [end for end in ended if end.place.line < workaround.place.line]
        after = [end for end in ended if end.place.line > workaround.place.line]
        stopped = any(word.place.line < workaround.place.line for word in (*hung, *_by_hand(log)))
        worked = went_on_after(log, workaround.place) or any(
            end.place.line > workaround.place.line for end in finished
        )
        if "P2P" not in workaround.values["setting"] or any(end.exit_code for end in after):
            continue
        if (any(end.exit_code in _BY_TIMEOUT for end in before) and after) or (stopped and worked):
            return workaround
    return None


def _worked_without(log: Log, off: Process) -> Suspect:
    """Return that what differs between a run that hung and one that worked is direct access between GPUs."""
    setting = next(f"{name}={value}" for name, value in off.settings.items() if (name, value) in P2P_OFF)
    return suspect(
        "The job hung while its GPUs talked directly, until somebody stopped it, and worked without direct access.",
        [*remarks(log, "hang")[:1], as_line(off, f"{setting} set by environment")],
        confidence="likely",
    )


def _later_without(log: Log) -> Process | None:
    """Return a process without direct access, where a run with it was stopped by hand and its own, later, worked."""
    off = next((process for process in log.processes if is_without_p2p(process)), None)
    used = any(link.via.startswith("P2P/") for process in log.processes for link in process.links)
    if off is None or not used or len(log.files) != 1:
        return None
    begun = off.place.line
    ends = [end.place.line for end in remarks(log, "finished", "succeeded")]
    stopped = [key.place.line for key in interrupts(log)]
    waited = [word.place.line for word in remarks(log, "hang")]
    hung = any(wait < line < begun for wait in waited for line in stopped) and not any(
        end < begun for end in ends
    )
    return off if hung and any(end > begun for end in ends) else None


def _hung_later_without(log: Log, workaround: Remark) -> bool:
    """Return True if the command ended well with the setting, and the next one, without it, was stopped by hand."""
    starts = [start for start in launched(log) if start.place.line > workaround.place.line]
    if not starts or typed(starts[0]) != typed(workaround):
        return False
    again = starts[0].place.line
    ends = [end.place.line for end in remarks(log, "finished", "succeeded")]
    stopped = any(event.place.line > again for event in (*interrupts(log), *_by_hand(log)))
    worked = any(workaround.place.line < end < again for end in ends)
    return stopped and worked and not any(end > again for end in ends)


def _by_hand(log: Log) -> list[PythonException]:
    """Return torchrun's word that a person stopped it (SIGINT)."""
    return [event for event in exceptions(log, "launcher") if event.message.endswith("got signal: 2")]


def _is_first_collective(log: Log) -> bool:
    late = timeouts(log)
    return all(timeout.sequence in (0, 1) for timeout in late) and all(
        statuse.completed <= 0 for statuse in statuses(log)
    )


def _uses_pcie(log: Log) -> bool:
    """True if all ranks are on one node and channels go through direct pointers or IPC."""
    hosts = {process.host for process in log.processes}
    if len(hosts) == 1 and any("P2P" in hop.text for hop in remarks(log, "local-hop")):
        return True
    return len(hosts) == 1 and any(
        link.via.startswith("P2P/") for process in log.processes for link in process.links
    )
