"""Which ranks broke the benchmark: the causes, not their victims, from what every rank was last seen doing."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.progress_page import ErrorKind, GpuSign, Phase
from ncclcheck.bench.silence import Network, lost_hosts
from ncclcheck.bench.stderr_cause import is_echo, is_own_gpu
from ncclcheck.model.bench import LEFT_EARLY, FailureState, RankFailure
from ncclcheck.model.units import format_size

_BYTES_PER_S = 4e6  # what the slowest network worth benchmarking is allowed to take for a first call
_GPU_BYTES_PER_S = 100e6  # the same between GPUs: what a link of 1 Gbit/s carries
_FILLED_BYTES_PER_S = 250e6  # touching fresh memory: twice the size for a rank, on a busy machine
# Gloo's and the kernel's words for a FIN or RST of the other end, which the network has brought
_CLOSED_BY_PEER, _RESET_BY_PEER = "Connection closed by peer", "Connection reset by peer"
NOTHING_KNOWN = Network()
_TIMES_LONGEST = 5  # a call may take this many times the longest one of its point


class RankState(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One rank as its own node sees it. Travels between nodes as JSON, without names: eight ranks fit one packet.

    `stat` is the kernel's letter of its process ("" once it is gone), `exit_code` Python's: negative is a signal.
    `calls` counts the collective calls entered; all ranks make the same calls in the same order.
    """

    rank: int
    host: str
    pid: int
    stat: str
    exit_code: int | None
    ended_s: float  # since it was seen to have ended or failed; 0 while it does neither
    phase: Phase
    op: str
    size_bytes: int  # while it is starting, the largest of the plan
    iteration: int
    inside: bool
    calls: int
    idle_s: float  # since it last made progress
    longest_call_s: float  # of this point so far; 0: none yet
    error_kind: ErrorKind = "none"
    error: str = ""
    last_words: str = (
        ""  # the end of its standard error; of one that hangs, what NCCL has warned of since then
    )
    unanswered: tuple[
        str, ...
    ] = ()  # addresses that do not acknowledge what it sends (bench.tcp_connections)
    gpu: GpuSign = ""  # of a rank that waits for its GPU
    gpu_pci: str = ""

    @property
    def done(self) -> bool:
        """Return whether it measured everything and has nothing more to do."""
        return self.phase == "done"


class Deadlines(Struct, frozen=True):
    """How long each phase may take; `timeouts` says why."""

    start_s: float = timeouts.WORKER_IMPORT_S
    join_s: float = timeouts.WORKER_JOIN_S
    first_call_s: float = timeouts.WORKER_FIRST_CALL_S
    stall_s: float = timeouts.WORKER_STALL_S
    stopped_s: float = timeouts.WORKER_STOPPED_S
    lost_s: float = timeouts.NODE_LOST_S
    first_word_s: float = timeouts.NODE_FIRST_WORD_S
    settle_s: float = timeouts.ERROR_SETTLES_S
    quiet_s: float = timeouts.NODE_QUIET_S
    bytes_per_s: float = _BYTES_PER_S


DEADLINES = Deadlines()
# When the time of the run is over nothing more can be waited for: who is stopped or failed then is named.
AT_THE_END = Deadlines(stopped_s=timeouts.WORKER_STOPPED_AT_END_S, settle_s=0.0)


def on_gpus(deadlines: Deadlines) -> Deadlines:
    """Return the deadlines where GPUs send the data."""
    return replace(deadlines, bytes_per_s=_GPU_BYTES_PER_S)


def all_done(states: Sequence[RankState], world_size: int) -> bool:
    """Return whether every rank of the job measured everything."""
    return len({state.rank for state in states if state.done}) == world_size


def has_started(states: Sequence[RankState], world_size: int) -> bool:
    """Return whether every rank joined the group: the benchmark ran, whatever its outcome."""
    return len({state.rank for state in states if state.phase not in ("starting", "joining")}) == world_size


def judge(
    states: Sequence[RankState],
    hosts: Sequence[str],
    unheard_s: Mapping[str, float],
    deadlines: Deadlines = DEADLINES,
    network: Network = NOTHING_KNOWN,
) -> tuple[RankFailure, ...]:
    """Return the ranks that broke the run, or nothing while there is still reason to wait.

    `hosts` names the host of every rank, `unheard_s` how long ago each host's agent last spoke. A rank whose process
    ended, an own error and a lost node are causes. An error out of a collective call is usually the echo of another
    rank's death, so it is only believed once every node has spoken after it and none names a cause. A rank that
    does not come is found by comparing positions: it has entered fewer calls than the one that others wait in. On GPUs
    the positions are theirs, and a GPU that runs nothing while others do is the cause. Where
    the kernel of a waiting rank says which peer does not acknowledge, it is the way between these two.
    """
    states = sorted(states, key=lambda state: state.rank)
    lost = _lost_ranks(states, hosts, unheard_s, deadlines, network)
    if lost is None:
        return ()
    known = [
        state for state in states if unheard_s.get(state.host, 0.0) < deadlines.lost_s and not state.done
    ]
    causes = lost + [_ended(state) for state in known if _is_cause(state)]
    causes += [
        _stopped(state) for state in known if state.stat in ("T", "t") and state.idle_s >= deadlines.stopped_s
    ]
    if causes:
        return tuple(sorted(causes, key=lambda failure: failure.rank))
    echoes = [state for state in known if _has_failed(state)]
    if echoes:
        age_s = max(state.ended_s for state in echoes)
        unsettled = age_s < deadlines.settle_s or any(seconds >= age_s for seconds in unheard_s.values())
        stopping = any(state.stat in ("T", "t") for state in known)
        if unsettled or stopping:
            return ()
        first = [state for state in echoes if not _lost_a_peer(state)]
        return tuple(map(_ended, first or echoes))
    return _hanging(known, hosts, {state.rank for state in states}, deadlines, network.host_of_address)


def allowed_s(state: RankState, deadlines: Deadlines) -> float:
    """Return how long the rank may be without progress where it is."""
    if state.phase == "starting":
        return deadlines.start_s + state.size_bytes / _FILLED_BYTES_PER_S
    if state.phase == "joining":
        return deadlines.join_s
    if state.phase == "waiting":
        return math.inf
    if not state.longest_call_s:
        return deadlines.first_call_s + state.size_bytes / deadlines.bytes_per_s
    return deadlines.stall_s + _TIMES_LONGEST * state.longest_call_s


def place(state: RankState) -> str:
    """Return where the rank is: "all_reduce 64M, iteration 3"."""
    if state.phase == "starting":
        return "starting (importing torch, allocating buffers)"
    if state.phase == "joining":
        return "joining the group"
    if state.phase == "waiting":
        return "waiting for its turn"
    if state.phase == "isolating":
        return "the comparison of single ranks and links"
    if state.phase in ("leaving", "done"):
        return "the end"
    point = f"{state.op} {format_size(state.size_bytes)}"
    if state.phase == "first-call":
        return f"{point}, first call"
    if state.phase == "warm-up":
        return f"{point}, warm-up"
    if state.phase == "agreeing":
        return f"{point}, exchange of the results after iteration {state.iteration}"
    return f"{point}, iteration {state.iteration}"


def _is_cause(state: RankState) -> bool:
    ended_silently = state.exit_code is not None and state.error_kind == "none"
    return (ended_silently and not _lost_a_peer(state)) or state.error_kind == "own"


def _lost_a_peer(state: RankState) -> bool:
    """Return whether NCCL says that another rank is gone: by an exception, or by torch's watchdog, which ends the rank.

    It aborts (SIGABRT). Torch 2.7 was also seen to die of SIGSEGV while it dumps its records before that.
    """
    ended_by_watchdog = bool(state.exit_code) and is_echo(state.last_words)
    return ended_by_watchdog or (state.error_kind == "communication" and is_echo(state.error))


def _has_failed(state: RankState) -> bool:
    return state.exit_code is not None or state.error_kind != "none"


def _hanging(
    states: Sequence[RankState],
    hosts: Sequence[str],
    seen: set[int],
    deadlines: Deadlines,
    host_of_address: Mapping[str, str],
) -> tuple[RankFailure, ...]:
    overdue = [state for state in states if _waited_s(state, states) > allowed_s(state, deadlines)]
    if not overdue:
        return ()
    waited_s = max(state.idle_s for state in overdue)
    never = [
        RankFailure(rank, host, "late", "the start of its process", "its node never started it", waited_s)
        for rank, host in enumerate(hosts)
        if rank not in seen
    ]
    hung = [state for state in states if state.gpu == "silent"]
    if failed := [state for state in states if is_own_gpu(state.last_words)]:
        return tuple(_failure(state, "error", "a call to its GPU failed") for state in failed)
    if hung and any(state.gpu == "alive" for state in states):
        return tuple(_gpu_hung(state) for state in hung)
    if cut := _cut_off(states, host_of_address):
        return cut
    front = max(states, key=_position)
    behind = [state for state in states if _position(state) < _position(front)]
    outside = [state for state in behind if not state.inside]
    if never or outside:
        ahead = len(states) - len(behind)
        return (*never, *(_never_entered(state, front, ahead) for state in outside))
    if not any(state.inside for state in states):
        return tuple(_slow_alone(state) for state in overdue)
    if behind and 2 * len(behind) < len(hosts):
        return tuple(_never_left(state, front) for state in behind)
    return tuple(_stuck(state) for state in states)


def _waited_s(state: RankState, states: Sequence[RankState]) -> float:
    """Return how long a rank has been without progress; while the group forms, since its last rank joined."""
    if state.phase != "joining":
        return state.idle_s
    if any(rank.phase == "starting" for rank in states):
        return 0.0  # it waits for a rank that has a deadline of its own
    return min(rank.idle_s for rank in states if rank.phase == "joining")


def _cut_off(states: Sequence[RankState], host_of_address: Mapping[str, str]) -> tuple[RankFailure, ...]:
    """Return the ranks at both ends of connections on which nothing is acknowledged.

    One host that is an end of all of several such connections is the one that is cut off.
    """
    pairs = [
        (state.host, host_of_address.get(address, address))
        for state in states
        for address in state.unanswered
    ]
    ends = {frozenset(pair) for pair in pairs}
    shared = frozenset.intersection(*ends) if len(ends) > 1 else frozenset()
    failures = []
    for state in states:
        peers = sorted({host for pair in ends if state.host in pair for host in pair - {state.host}})
        if not peers or (len(shared) == 1 and state.host not in shared):
            continue
        sent = f"{state.host} and {' and '.join(peers)} do not acknowledge each other's packets"
        if (state.host, peers[0]) not in pairs:
            sent = f"{state.host} does not acknowledge the packets of {' and '.join(peers)}, sent again and again"
        elif (peers[0], state.host) not in pairs:
            sent = f"{state.host} sends to {' and '.join(peers)} again and again, and nothing is acknowledged"
        failures.append(_failure(state, "stuck", f"{sent}: the network between them, not a rank"))
    return tuple(failures)


def _position(state: RankState) -> tuple[int, int]:
    order = {"starting": 0, "joining": 1}.get(state.phase, 2)
    return order, state.calls


_STATES = {  # proc(5)
    "R": " (it computes, or waits for a core that others use)",
    "D": " (it waits for a disk or a network filesystem)",
    "S": " (it sleeps)",
}


def _gpu_hung(state: RankState) -> RankFailure:
    detail = (
        "its GPU runs nothing any more, not even a kernel beside the call, and the GPUs that wait for it do"
    )
    return _failure(state, "hung", detail)


def _never_entered(state: RankState, front: RankState, ahead: int) -> RankFailure:
    waiting = f"{ahead} other rank{'s are' if ahead != 1 else ' is'}"
    if state.gpu == "behind":
        enqueued = "its process has enqueued the call, and its GPU does not come to it"
        return _failure(state, "hung", f"{enqueued}: {waiting} at {place(front)}")
    detail = (
        f"not inside the call: {waiting} at {place(front)}; its process {state.pid} is in state {state.stat}"
        f"{_STATES.get(state.stat, '')}"
    )
    return _failure(state, "late", detail)


def _never_left(state: RankState, front: RankState) -> RankFailure:
    left = f"still inside the call that others have left (they are at {place(front)})"
    return _failure(state, "late", f"{left}: what it waits for does not arrive")


def _slow_alone(state: RankState) -> RankFailure:
    detail = (
        f"it does not get on by itself, in no call; its process {state.pid} is in state {state.stat}"
        f"{_STATES.get(state.stat, '')}"
    )
    return _failure(state, "late", detail)


def _stuck(state: RankState) -> RankFailure:
    return _failure(
        state, "stuck", "every rank is inside a call and none gets on: the network rather than a rank"
    )


def _stopped(state: RankState) -> RankFailure:
    return _failure(
        state,
        "stopped",
        f"its process {state.pid} is stopped (state {state.stat}): a signal or a debugger did that",
    )


def _lost_ranks(
    states: Sequence[RankState],
    hosts: Sequence[str],
    unheard_s: Mapping[str, float],
    deadlines: Deadlines,
    network: Network,
) -> list[RankFailure] | None:
    """Return the ranks of nodes that have gone silent; None while it is not clear which nodes these are."""
    spoken = {state.host for state in states}
    silent = {
        host
        for host in hosts
        if unheard_s.get(host, 0.0) >= (deadlines.lost_s if host in spoken else deadlines.first_word_s)
    }
    if not silent:
        return []
    if any(unheard_s.get(host, 0.0) >= deadlines.quiet_s for host in set(hosts) - silent - {hosts[0]}):
        return None
    errors = [state.error for state in states if state.host == hosts[0]]
    delivers = any(_CLOSED_BY_PEER in error or _RESET_BY_PEER in error for error in errors)
    lost = lost_hosts(hosts, silent, unheard_s, replace(network, delivers=delivers))
    if lost is None:
        return None
    least_s = min(unheard_s[host] for host in silent)  # of node 0, which hears itself
    return [
        _lost(rank, host, unheard_s[host] if host in silent else least_s, lost[host], states)
        for rank, host in enumerate(hosts)
        if host in lost
    ]


def _lost(
    rank: int, host: str, unheard_s: float, detail: str, states: Iterable[RankState] = ()
) -> RankFailure:
    last = next((state for state in states if state.rank == rank), None)
    where = place(last) if last is not None else "the start of its process"
    return RankFailure(rank, host, "lost", where, detail, round(unheard_s, 3))


def process_lost(rank: int, host: str, unheard_s: float, states: Iterable[RankState] = ()) -> RankFailure:
    """Return the failure of a rank whose process is silent while others on its node speak."""
    detail = f"no word from the process that started it for {unheard_s:.0f} s; others on its node speak"
    return _lost(rank, host, unheard_s, detail, states)


def left_early(rank: int, host: str, states: Iterable[RankState]) -> RankFailure:
    """Return the failure of a rank whose node was stopped (Ctrl-C, a signal) while the other nodes went on."""
    return _lost(rank, host, 0.0, LEFT_EARLY, states)


def _ended(state: RankState) -> RankFailure:
    if state.error_kind != "none":
        return _failure(state, "error", state.error)
    words = f"; its last words: {state.last_words}" if state.last_words else ""
    return _failure(state, "died", _exit_text(state.exit_code or 0) + words)


def _exit_text(exit_code: int) -> str:
    if exit_code >= 0:
        return f"its process ended by itself with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    killer = " (the kernel's out-of-memory killer sends it, too: see dmesg)" if name == "SIGKILL" else ""
    return f"its process was killed by {name}{killer}"


def _failure(state: RankState, failed: FailureState, detail: str) -> RankFailure:
    if state.exit_code is None and state.last_words:
        detail = f"{detail}; NCCL said there: {' / '.join(state.last_words.splitlines())}"
    return RankFailure(state.rank, state.host, failed, place(state), detail, round(state.idle_s, 3))
