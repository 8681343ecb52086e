"""What both ends of a probe say together: a failure counts only where the called node was there to answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ncclcheck.model.snapshot import Probe


def without_the_silent(probes: tuple[Probe, ...], silent: frozenset[str]) -> tuple[Probe, ...]:
    """Mark as errors the failed probes to a node that gave no answer itself: they say nothing about the network.

    A process that has ended refuses like a firewall, and a stopped one accepts and says nothing, like a stranger.
    """
    return tuple(
        replace(
            probe,
            outcome="error",
            detail=f"{probe.outcome} ({probe.detail}), and {probe.to_host} itself did not answer any more",
        )
        if probe.to_host in silent and probe.outcome != "ok"
        else probe
        for probe in probes
    )


def with_nccl_there(probes: Sequence[Probe], listening: Collection[str]) -> list[Probe]:
    """Mark as an error a refusal at NCCL's own listener, unless the node says that the listener was still there."""
    return [
        replace(
            probe, outcome="error", detail=f"{probe.detail}; and {probe.to_host} does not have it any more"
        )
        if probe.listener == "nccl" and probe.outcome == "refused" and probe.to_host not in listening
        else probe
        for probe in probes
    ]


def compare_notes(
    probes: list[Probe], addresses: dict[str, frozenset[str]], unanswered: dict[str, frozenset[str]]
) -> tuple[Probe, ...]:
    """Return the probes after both ends compared notes: a call without answer that did arrive is "answer-lost"."""
    nowhere: frozenset[str] = frozenset()

    def compared(probe: Probe) -> Probe:
        arrived = addresses.get(probe.from_host, nowhere) & unanswered.get(probe.to_host, nowhere)
        if probe.outcome != "filtered" or not arrived:
            return probe
        detail = f"{probe.detail}; the call arrived at {probe.to_host}, whose answers do not come back"
        return replace(probe, outcome="answer-lost", detail=detail)

    return tuple(compared(probe) for probe in probes)
