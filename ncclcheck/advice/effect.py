"""What the comparison of as-is and advised says about the advice: the effect, or that there is none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.advice.gloo import gloo_places
from ncclcheck.advice.proof import Part, Settled, in_words
from ncclcheck.advice.rule import Changes
from ncclcheck.measure.links.network_rates import FASTER, measured_gbit_s_to
from ncclcheck.model.bench import Comparison
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_size


def with_effect(snapshot: Snapshot, settled: Settled) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Return the parts, marked as proven where the comparison ran with exactly them, and notes on those it rules out.

    Parts that its backend does not use keep the proof they had: a gloo collective says nothing of NCCL's RDMA.
    """
    comparison = snapshot.comparison
    if isinstance(comparison, Missing) or not settled.parts:
        return settled.parts, ()
    if _set(comparison.advised.changes) != settled.changes or _set(comparison.as_is.changes):
        return settled.parts, ("the comparison was made with other settings than these, so it is no proof",)
    tried = [part for part in settled.parts if _is_used(snapshot, settled, part, comparison)]
    not_tried = [part for part in settled.parts if part not in tried]
    if not tried or comparison.verdict == "not measured":
        return settled.parts, ()
    effect = _effect(comparison)
    if comparison.verdict in {"faster", "as-is failed"}:
        together = " (all settings together)" if len(tried) > 1 else ""
        proven = {
            id(part): replace(part, proof="measured", evidence=f"{effect}{together}; {part.evidence}")
            for part in tried
        }
        return tuple(proven.get(id(part), part) for part in settled.parts), ()
    words = " and ".join(in_words(part.env_by_host) for part in tried)
    if (
        comparison.verdict == "both failed"
    ):  # the cause is another one, which takes nothing from what was asked
        return settled.parts, (f"{words} could not be measured: {effect}",)
    if comparison.verdict in {"no effect", "slower"}:
        needed = [part for part in tried if _needs_more_than_was_tried(snapshot, part, comparison)]
        if needed:
            return tuple(part for part in settled.parts if part in (*not_tried, *needed)), _notes(
                tried, needed, effect
            )
    return tuple(not_tried), (f"{words} was withheld: {effect}",)


def _needs_more_than_was_tried(snapshot: Snapshot, part: Part, comparison: Comparison) -> bool:
    """Return True if NCCL makes a connection that fails or is slow, and Gloo, which was measured, does not make it.

    Of each pair of ranks only one connects in Gloo (gloo/transport/tcp/pair.cc), in NCCL both do.
    """
    if comparison.backend != "gloo" or part.subject != "sockets":
        return False
    return part.purpose == "repair" or _is_slow_one_way(snapshot, comparison)


def _is_slow_one_way(snapshot: Snapshot, comparison: Comparison) -> bool:
    """Return True if a node uses the advised network and its traffic to a node that does not is clearly slower."""
    as_is, advised = comparison.as_is.places, comparison.advised.places
    gbit_s = {host: to.median for host, to in measured_gbit_s_to(snapshot.probes, as_is).items()}
    there = [value for host, value in gbit_s.items() if as_is[host] == advised.get(host)]
    elsewhere = [value for host, value in gbit_s.items() if as_is[host] != advised.get(host)]
    return bool(there) and bool(elsewhere) and min(there) >= FASTER * min(elsewhere)


def _notes(tried: Sequence[Part], needed: Sequence[Part], effect: str) -> tuple[str, ...]:
    stay = " and ".join(in_words(part.env_by_host) for part in needed)
    go = " and ".join(in_words(part.env_by_host) for part in tried if part not in needed)
    notes = [
        f"{stay} stays advised, though Gloo's collective went without it ({effect}): of two nodes only one connects "
        "to the other in Gloo, and in NCCL both do, of which one "
        + ("fails" if any(part.purpose == "repair" for part in needed) else "has the slow way")
    ]
    return (*notes, f"{go} was withheld: {effect}") if go else tuple(notes)


def _is_used(snapshot: Snapshot, settled: Settled, part: Part, comparison: Comparison) -> bool:
    """Return True if the collective of that backend uses another network with the part than without.

    Gloo's collectives are bound to the places that are compared, so they tell about Gloo's own setting only where it
    leads from the one to the other as well.
    """
    is_gloo = comparison.backend == "gloo"
    if part.subject == "network":
        return not is_gloo
    if part.subject == "sockets":
        return not is_gloo or comparison.as_is.places != comparison.advised.places
    network = settled.decision.gloo.network
    leads_there = network is not None and network.places == comparison.advised.places
    return is_gloo and leads_there and gloo_places(snapshot) == comparison.as_is.places


def _effect(comparison: Comparison) -> str:
    how = f"{comparison.op} {format_size(comparison.size_bytes)}, {comparison.world_size} ranks, {comparison.backend}"
    if comparison.verdict == "as-is failed":
        return f"as-is failed: {comparison.as_is.failure}; with it the same collective succeeded ({how})"
    if comparison.verdict == "advised failed":
        return f"the collective failed with it and not without it: {comparison.advised.failure} ({how})"
    if comparison.verdict == "both failed":
        return f"the collective failed with it too: {comparison.advised.failure} ({how})"
    times = _times(comparison)
    rounds = f"{how}, {comparison.rounds} rounds"
    if comparison.verdict == "no effect":
        return f"no effect: {times}, {rounds}"
    return f"{times}, {rounds}"


def _times(comparison: Comparison) -> str:
    speedup, low, high = comparison.speedup, comparison.speedup_low, comparison.speedup_high
    if speedup is None:
        return comparison.verdict
    if comparison.verdict == "slower":
        speedup, low, high = 1 / speedup, high and 1 / high, low and 1 / low
        word = "slower"
    else:
        word = "faster" if comparison.verdict == "faster" else "the speed"
    interval = f", 95 % interval {low:.2f} to {high:.2f}" if low is not None and high is not None else ""
    return f"{speedup:.2f} times {word}{interval}"


def _set(changes: Changes) -> Changes:
    return {host: env for host, env in changes.items() if env}
