"""Has a job advanced since the look before, for how long has it stood still, and how long may it?

Bytes and switches count, not CPU time: a rank that waits for a GPU may spin at 100 %. Of the switches those of the
idlest rank count, since a rank that polls for something wakes up often and gets nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.job.watched import Look, RankLook

_KEPT_RATES = 60  # of looks in which the job advanced
_LEAST_BYTES_PER_S = 1024.0  # of the ranks' own files and sockets: heartbeats of an idle job stay below
_LEAST_NETWORK_PER_S = float(1 << 20)  # of the links, which other programs of the host use too
_PART_OF_NETWORK = 0.1
_LEAST_SWITCHES_PER_S = 2.0  # of a rank's main thread: a wait that wakes up once a second is still a wait
_PART_OF_USUAL = 0.02
_STEADY_LOOKS = 3  # the job has started once it advanced in so many looks
_RAISED = 5.0  # times the longest quiet spell that the job recovered from


class Pace(Struct, frozen=True):
    """The job so far: when it last advanced, its usual rates, and the longest quiet spell that it recovered from."""

    look: Look
    advanced_at_s: float
    byte_rates: tuple[float, ...] = ()
    network_rates: tuple[float, ...] = ()
    switch_rates: tuple[float, ...] = ()
    steady_looks: int = 0
    longest_quiet_s: float = 0.0


class Moved(Struct, frozen=True):
    """How much moved between two looks, per second: bytes of ranks, of links, switches of the idlest main thread."""

    bytes_per_s: float
    network_per_s: float
    switches_per_s: float


def first_pace(look: Look) -> Pace:
    """Return the pace of a job that was looked at once."""
    return Pace(look, look.at_s)


class Signs(Struct, frozen=True):
    """Signs that the ranks of a node advance: bytes moved, or even the idlest rank woke up often."""

    moves_bytes: bool
    wakes: bool


def signs(pace: Pace, look: Look) -> Signs:
    """Return the signs of an advance since the look before; ranks that were started since count as one."""
    moved = moved_between(pace.look, look)
    least_bytes = max(_LEAST_BYTES_PER_S, _PART_OF_USUAL * median(pace.byte_rates or (0.0,)))
    least_network = max(_LEAST_NETWORK_PER_S, _PART_OF_NETWORK * median(pace.network_rates or (0.0,)))
    least_switches = max(_LEAST_SWITCHES_PER_S, _PART_OF_USUAL * median(pace.switch_rates or (0.0,)))
    started = _started(pace, look)
    moves_bytes = moved.bytes_per_s > least_bytes or moved.network_per_s > least_network
    return Signs(moves_bytes or started, moved.switches_per_s > least_switches or started)


def next_pace(pace: Pace, look: Look, *, works: bool = False) -> Pace:
    """Return the pace after another look. `works`: NCCL's counts or the GPUs tell so, whatever the look shows."""
    seen = signs(pace, look)
    if not (seen.moves_bytes or seen.wakes):
        return _advanced(pace, look, started=False) if works else replace(pace, look=look)
    moved = moved_between(pace.look, look)
    return replace(
        _advanced(pace, look, started=_started(pace, look)),
        byte_rates=(*pace.byte_rates, moved.bytes_per_s)[-_KEPT_RATES:],
        network_rates=(*pace.network_rates, moved.network_per_s)[-_KEPT_RATES:],
        switch_rates=(*pace.switch_rates, moved.switches_per_s)[-_KEPT_RATES:],
    )


def next_job_pace(pace: Pace, at_s: float, nodes: Sequence[Signs]) -> Pace:
    """Return the pace of a whole job after its nodes reported their signs.

    It advances where one node moves bytes, or where the ranks of all nodes wake up: one that polls for something while
    the others wait gets nowhere.
    """
    look = Look(at_s, ())
    if any(node.moves_bytes for node in nodes) or (nodes and all(node.wakes for node in nodes)):
        return _advanced(pace, look, started=False)
    return replace(pace, look=look)


def _started(pace: Pace, look: Look) -> bool:
    return {rank.pid for rank in pace.look.ranks} != {rank.pid for rank in look.ranks}


def _advanced(pace: Pace, look: Look, *, started: bool) -> Pace:
    spell_s = pace.look.at_s - pace.advanced_at_s  # nothing advanced up to the look before
    is_steady = pace.steady_looks >= _STEADY_LOOKS
    return replace(
        pace,
        look=look,
        advanced_at_s=look.at_s,
        steady_looks=0 if started else pace.steady_looks + 1,
        longest_quiet_s=max(pace.longest_quiet_s, spell_s) if is_steady else pace.longest_quiet_s,
    )


def rested(pace: Pace, look: Look) -> Pace:
    """Return the pace as if the job had advanced just now: the time before does not count (a machine that slept)."""
    return replace(pace, look=look, advanced_at_s=look.at_s)


def overlooked(pace: Pace, look: Look) -> Pace:
    """Return the pace as if nothing had moved since the look before: reading the stacks itself wakes the ranks."""
    return replace(pace, look=look)


def still_s(pace: Pace) -> float:
    """Return for how long nothing has advanced, by the last look."""
    return pace.look.at_s - pace.advanced_at_s


def patience_s(pace: Pace, asked_s: float) -> float:
    """Return after how long this job counts as frozen: as asked, or longer where it paused for long before."""
    return max(asked_s, _RAISED * pace.longest_quiet_s)


def moved_between(before: Look, after: Look) -> Moved:
    """Return what moved between two looks."""
    seconds = max(after.at_s - before.at_s, 1e-3)
    known = {rank.pid: rank for rank in before.ranks}
    pairs = [(known[rank.pid], rank) for rank in after.ranks if rank.pid in known]
    io_bytes = sum(max(0, rank.io_bytes - earlier.io_bytes) for earlier, rank in pairs)
    network = max(0, after.network_bytes - before.network_bytes)
    switches = min((max(0, rank.switches - earlier.switches) for earlier, rank in pairs), default=0)
    return Moved(io_bytes / seconds, network / seconds, switches / seconds)


def is_still(before: RankLook, after: RankLook, seconds: float) -> bool:
    """Return True if the rank's main thread hardly woke up, and the rank moved hardly a byte."""
    switches = (after.switches - before.switches) / seconds
    io_bytes = (after.io_bytes - before.io_bytes) / seconds
    return switches <= _LEAST_SWITCHES_PER_S and io_bytes <= _LEAST_BYTES_PER_S
