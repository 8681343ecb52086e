"""The culprit is named, not its victims, and nobody before there is reason to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import (
    AT_THE_END,
    RankState,
    all_done,
    allowed_s,
    has_started,
    judge,
    left_early,
    on_gpus,
)
from ncclcheck.bench.culprits import DEADLINES as LIMITS
from ncclcheck.bench.silence import Network
from ncclcheck.model.codec import decode, encode

HOSTS = ("node01", "node02", "node03", "node04")
HEARD = dict.fromkeys(HOSTS, 0.2)


def rank(number: int, **changes: object) -> RankState:
    """A rank that waits inside iteration 3 of all_reduce 64M."""
    inside = RankState(
        rank=number, host=HOSTS[number], pid=4000 + number, stat="S", exit_code=None, ended_s=0.0,
        phase="measuring", op="all_reduce", size_bytes=64 << 20, iteration=3, inside=True, calls=20,
        idle_s=0.1, longest_call_s=0.1,
    )  # fmt: skip
    return replace(inside, **changes)


def states(*changed: RankState) -> list[RankState]:
    by_rank = {state.rank: state for state in changed}
    return [by_rank.get(number, rank(number)) for number in range(4)]


def test_a_healthy_run_names_nobody() -> None:
    assert judge(states(), HOSTS, HEARD) == ()
    assert judge(states(rank(2, inside=False, calls=19, idle_s=9.0)), HOSTS, HEARD) == ()


def test_a_killed_rank_is_named_at_once_with_its_signal() -> None:
    (failure,) = judge(states(rank(2, stat="", exit_code=-9, ended_s=0.01)), HOSTS, HEARD)
    assert (failure.rank, failure.host, failure.state) == (2, "node03", "died")
    assert failure.where == "all_reduce 64M, iteration 3"
    assert "SIGKILL" in failure.detail


def test_the_echoes_of_a_death_are_not_named() -> None:
    echo = {"error_kind": "communication", "error": "RuntimeError: Connection closed by peer", "exit_code": 1}
    echoes = [rank(n, ended_s=0.5, **echo) for n in (0, 1, 3)]
    assert judge(states(*echoes), HOSTS, HEARD) == ()
    named = judge(states(*echoes, rank(2, stat="", exit_code=-9, ended_s=0.1)), HOSTS, HEARD)
    assert [failure.rank for failure in named] == [2]


def test_a_broken_connection_without_a_death_is_named_once_every_node_has_spoken_after_it() -> None:
    echo = rank(
        1, error_kind="communication", error="RuntimeError: Connection reset", exit_code=1, ended_s=2.0
    )
    assert judge(states(echo), HOSTS, {**HEARD, "node03": 2.5}) == ()
    (failure,) = judge(states(echo), HOSTS, HEARD)
    assert (failure.rank, failure.state, failure.detail) == (1, "error", "RuntimeError: Connection reset")


def test_a_rank_out_of_memory_is_named_at_once() -> None:
    own = rank(
        3, phase="starting", error_kind="own", error="RuntimeError: can't allocate memory", ended_s=0.01
    )
    (failure,) = judge(states(own), HOSTS, HEARD)
    assert (failure.rank, failure.state) == (3, "error")
    assert failure.where.startswith("starting")


def test_a_stopped_rank_is_named_after_five_seconds_and_a_pulse_is_not() -> None:
    assert judge(states(rank(1, stat="T", idle_s=2.0)), HOSTS, HEARD) == ()
    (failure,) = judge(states(rank(1, stat="T", idle_s=5.5)), HOSTS, HEARD)
    assert (failure.rank, failure.state) == (1, "stopped")


def test_who_is_stopped_when_the_time_is_over_is_named_though_it_was_not_waited_for() -> None:
    stopped = states(rank(1, stat="T", idle_s=2.0), rank(2, idle_s=2.0))
    (failure,) = judge(stopped, HOSTS, HEARD, AT_THE_END)
    assert (failure.rank, failure.state) == (1, "stopped")
    assert judge(states(), HOSTS, HEARD, AT_THE_END) == ()


def test_a_rank_that_never_entered_the_call_is_named_and_those_who_wait_are_not() -> None:
    waiting = [rank(n, idle_s=11.0) for n in (0, 1, 3)]
    late = rank(2, stat="D", inside=False, calls=19, idle_s=11.5)
    (failure,) = judge(states(*waiting, late), HOSTS, HEARD)
    assert (failure.rank, failure.state) == (2, "late")
    assert "3 other ranks are at all_reduce 64M, iteration 3" in failure.detail
    assert "state D" in failure.detail


def test_a_rank_left_behind_inside_the_previous_call_is_named() -> None:
    ahead = [rank(n, idle_s=11.0, iteration=4, calls=21) for n in (0, 1, 3)]
    (failure,) = judge(states(*ahead, rank(2, idle_s=11.5)), HOSTS, HEARD)
    assert (failure.rank, failure.state) == (2, "late")
    assert "does not arrive" in failure.detail


def test_when_nobody_differs_all_are_named_and_the_network_suspected() -> None:
    failures = judge([rank(n, idle_s=11.0) for n in range(4)], HOSTS, HEARD)
    assert [failure.rank for failure in failures] == [0, 1, 2, 3]
    assert {failure.state for failure in failures} == {"stuck"}
    assert "network rather than a rank" in failures[0].detail


def test_a_silent_node_is_lost_with_all_its_ranks() -> None:
    hosts = ("node01", "node01", "node02", "node02")
    (first, second) = judge(states(), hosts, {"node01": 0.1, "node02": 7.0})
    assert (first.rank, second.rank, first.state) == (2, 3, "lost")


def test_a_node_that_has_not_spoken_yet_gets_more_time_as_its_cores_may_be_busy() -> None:
    spoken = [state for state in states() if state.host != "node03"]
    silent = {**HEARD, "node03": 19.0}
    assert judge(spoken, HOSTS, silent) == ()
    assert judge(spoken, HOSTS, {**silent, "node02": 7.0}) == ()  # until it is clear who is gone
    (failure,) = judge(spoken, HOSTS, {**silent, "node03": 20.0})
    assert (failure.host, failure.state, failure.where) == ("node03", "lost", "the start of its process")


def test_nodes_that_fall_silent_together_are_judged_together() -> None:
    silent = {**HEARD, "node02": 6.1, "node03": 5.0}
    assert judge(states(), HOSTS, silent) == ()
    named = judge(states(), HOSTS, {**silent, "node03": 6.1})
    assert [failure.host for failure in named] == ["node02", "node03"]


def test_where_all_others_are_silent_it_is_node_0_that_is_cut_off() -> None:
    (failure,) = judge(states(), HOSTS, {"node01": 0.1, "node02": 6.0, "node03": 6.2, "node04": 6.1})
    assert (failure.host, failure.state) == ("node01", "lost")
    (failure,) = judge(states(), HOSTS, dict.fromkeys(HOSTS, 7.0))  # its own words do not reach its own store
    assert (failure.host, failure.state) == ("node01", "lost")
    assert "other 3 nodes" in failure.detail


ALL_SILENT = {"node01": 0.1, "node02": 6.0, "node03": 6.2, "node04": 6.1}
FOLLOWERS = ("node02", "node03", "node04")


def test_where_all_others_are_silent_and_a_kernel_answers_the_others_are_lost_and_node_0_is_not() -> None:
    network = Network(kernel_answers={"node02": True, "node03": False})
    failures = judge(states(), HOSTS, ALL_SILENT, network=network)
    assert [failure.host for failure in failures] == list(FOLLOWERS)
    assert "its kernel answers: ncclcheck ended or hangs there" in failures[0].detail
    assert "its kernel does not answer either" in failures[1].detail
    assert failures[2].detail == "no word from its node for 6 s"


def test_nobody_is_lost_before_the_kernels_of_silent_nodes_had_time_to_answer() -> None:
    asked = dict.fromkeys(FOLLOWERS)
    assert judge(states(), HOSTS, ALL_SILENT, network=Network(kernel_answers=asked)) == ()
    mute = dict.fromkeys(FOLLOWERS, False)
    (failure,) = judge(states(), HOSTS, ALL_SILENT, network=Network(kernel_answers=mute))
    assert failure.host == "node01"


def test_a_connection_that_the_others_closed_shows_that_the_network_of_node_0_works() -> None:
    closed = "RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711"
    first = rank(0, error_kind="communication", error=closed, exit_code=1, ended_s=6.0)
    mute = Network(kernel_answers=dict.fromkeys(FOLLOWERS, False))
    failures = judge(states(first), HOSTS, ALL_SILENT, network=mute)
    assert [failure.host for failure in failures] == list(FOLLOWERS)


def test_two_ends_of_a_cut_connection_are_named_and_the_ranks_between_are_not() -> None:
    waiting = [rank(n, idle_s=11.0) for n in (0, 3)]
    ends = (rank(1, idle_s=11.0, unanswered=("10.0.0.3",)), rank(2, idle_s=11.0))
    named = judge(states(*waiting, *ends), HOSTS, HEARD, network=Network({"10.0.0.3": "node03"}))
    assert [(failure.host, failure.state) for failure in named] == [("node02", "stuck"), ("node03", "stuck")]
    assert "node02 sends to node03" in named[0].detail


def test_host_that_several_others_cannot_reach_is_blamed() -> None:
    addresses = {f"10.0.0.{number + 1}": host for number, host in enumerate(HOSTS)}
    ends = [rank(n, idle_s=11.0, unanswered=("10.0.0.3",)) for n in (0, 1)]
    third = rank(2, idle_s=11.0, unanswered=("10.0.0.1",))
    waiting = rank(3, idle_s=11.0)
    (failure,) = judge(states(*ends, third, waiting), HOSTS, HEARD, network=Network(addresses))
    assert failure.host == "node03"
    assert "node01 and node02" in failure.detail


def test_retransmissions_alone_are_no_failure() -> None:
    assert judge(states(rank(1, idle_s=3.0, unanswered=("10.0.0.3",))), HOSTS, HEARD) == ()


def test_ranks_that_never_get_started_are_not_called_a_network_fault() -> None:
    slow = {"phase": "starting", "calls": 0, "inside": False, "size_bytes": 1024, "longest_call_s": 0.0}
    assert judge([rank(n, idle_s=44.0, **slow) for n in range(4)], HOSTS, HEARD) == ()
    named = judge([rank(n, idle_s=46.0, stat="R", **slow) for n in range(4)], HOSTS, HEARD)
    assert {failure.state for failure in named} == {"late"}
    assert all(rank_failure.where.startswith("starting (importing torch") for rank_failure in named)
    assert all("state R (it computes, or waits for a core" in rank_failure.detail for rank_failure in named)
    large = [rank(n, idle_s=46.0, **{**slow, "size_bytes": 10 << 30}) for n in range(4)]
    assert judge(large, HOSTS, HEARD) == ()


def test_an_interrupted_node_is_named_with_the_place_of_its_ranks() -> None:
    failure = left_early(2, "node03", states())
    assert (failure.host, failure.state, failure.where) == ("node03", "lost", "all_reduce 64M, iteration 3")
    assert "interrupted" in failure.detail


def test_eight_ranks_fit_one_packet() -> None:
    assert len(encode([rank(n % 4) for n in range(8)])) < 1200


def test_a_rank_its_node_never_started_is_named_when_the_others_waited_long_enough() -> None:
    joining = [rank(n, phase="joining", calls=1, idle_s=31.0, longest_call_s=0.0) for n in (0, 1, 2)]
    (failure,) = judge(joining, HOSTS, HEARD)
    assert (failure.rank, failure.host, failure.state) == (3, "node04", "late")


def test_a_rank_still_importing_torch_is_named_not_those_who_wait_to_be_joined() -> None:
    joining = [rank(n, phase="joining", calls=1, idle_s=31.0, longest_call_s=0.0) for n in (0, 1, 2)]
    slow = rank(3, phase="starting", calls=0, inside=False, idle_s=46.0, longest_call_s=0.0)
    (failure,) = judge([*joining, slow], HOSTS, HEARD)
    assert (failure.rank, failure.state) == (3, "late")


def test_slow_networks_get_time_by_size_and_by_what_calls_took_before() -> None:
    first = rank(0, phase="first-call", size_bytes=1 << 30, longest_call_s=0.0)
    assert 280 < allowed_s(first, LIMITS) < 300
    assert allowed_s(rank(0, longest_call_s=20.0), LIMITS) == 110.0
    assert allowed_s(rank(0), LIMITS) < 11.0


def test_done_and_started_are_said_of_the_whole_job() -> None:
    assert all_done([rank(n, phase="done") for n in range(4)], 4)
    assert not all_done([rank(n, phase="done") for n in range(3)], 4)
    assert has_started(states(), 4)
    assert not has_started(states(rank(2, phase="joining")), 4)


def test_a_done_rank_that_ended_is_no_failure() -> None:
    assert judge(states(rank(1, phase="done", stat="", exit_code=0, ended_s=3.0)), HOSTS, HEARD) == ()


def test_a_state_travels_as_json() -> None:
    assert decode(encode(rank(2)), RankState) == rank(2)


def test_a_group_that_does_not_form_is_judged_from_when_its_last_rank_came() -> None:
    joining = [rank(n, phase="joining", longest_call_s=0.0, idle_s=12.0) for n in (0, 1, 2)]
    last = rank(3, phase="joining", longest_call_s=0.0, idle_s=3.0)
    quick = replace(LIMITS, join_s=8.0)
    assert judge([*joining, last], HOSTS, HEARD, quick) == ()
    stuck = judge([*joining, replace(last, idle_s=8.5)], HOSTS, HEARD, quick)
    assert {failure.where for failure in stuck} == {"joining the group"}
    assert {failure.state for failure in stuck} == {"stuck"}


def test_a_rank_that_still_starts_has_its_own_time_and_is_the_late_one() -> None:
    joining = [rank(n, phase="joining", longest_call_s=0.0, idle_s=12.0) for n in (0, 1, 2)]
    starting = rank(3, phase="starting", size_bytes=1, inside=False, calls=0, idle_s=12.0)
    quick = replace(LIMITS, start_s=30.0, join_s=8.0)
    assert judge([*joining, starting], HOSTS, HEARD, quick) == ()
    (late,) = judge([*joining, replace(starting, idle_s=31.0)], HOSTS, HEARD, quick)
    assert (late.rank, late.state) == (3, "late")


def test_a_rank_may_wait_for_its_turn_for_ever_but_not_while_the_others_are_inside() -> None:
    waiting = [rank(n, phase="waiting", inside=False, idle_s=500.0) for n in range(4)]
    assert judge(waiting, HOSTS, HEARD) == ()
    inside = [rank(n, calls=21, idle_s=11.0) for n in (0, 1, 2)]
    (late,) = judge([*inside, waiting[3]], HOSTS, HEARD)
    assert (late.rank, late.state, late.where) == (3, "late", "waiting for its turn")


REMOTE = "NCCL error: remote process exited or there was a network error, NCCL version 2.27.5"


def test_ranks_that_the_watchdog_aborted_are_victims_of_the_one_with_a_cuda_error() -> None:
    aborted = [rank(n, stat="", exit_code=-6, ended_s=0.5, last_words=REMOTE) for n in (0, 1, 3)]
    assert judge(states(*aborted), HOSTS, HEARD) == ()
    ecc = rank(
        2, error_kind="own", error="AcceleratorError: CUDA error: uncorrectable ECC error", ended_s=0.1
    )
    (failure,) = judge(states(*aborted, ecc), HOSTS, HEARD)
    assert (failure.rank, failure.state) == (2, "error")
    assert "ECC" in failure.detail


@pytest.mark.parametrize("signal", [6, 11])
def test_a_failed_call_is_named_though_the_others_were_ended_by_their_watchdog(signal: int) -> None:
    victims = [rank(n, stat="", exit_code=-signal, ended_s=3.0, last_words=REMOTE) for n in (0, 1, 3)]
    failed = rank(
        2, error_kind="communication", error="ncclSystemError: connect failed", exit_code=1, ended_s=3.0
    )
    assert [failure.rank for failure in judge(states(*victims, failed), HOSTS, HEARD)] == [2]
    assert [failure.rank for failure in judge(states(*victims), HOSTS, HEARD)] == [0, 1, 3]


def test_whose_nccl_call_failed_is_named_and_not_those_that_lost_it() -> None:
    lost = {"error_kind": "communication", "error": REMOTE, "exit_code": 1, "ended_s": 3.0}
    failed = rank(2, error_kind="communication", error="ncclSystemError: connect failed", ended_s=3.0)
    victims = [rank(n, **lost) for n in (0, 1, 3)]
    assert [failure.rank for failure in judge(states(*victims, failed), HOSTS, HEARD)] == [2]
    assert [failure.rank for failure in judge(states(*victims), HOSTS, HEARD)] == [0, 1, 3]


def test_an_abort_for_another_reason_is_a_cause() -> None:
    aborted = rank(2, stat="", exit_code=-6, ended_s=0.1, last_words="free(): invalid pointer")
    assert [failure.rank for failure in judge(states(aborted), HOSTS, HEARD)] == [2]


def test_a_first_call_on_a_gpu_may_take_what_a_slow_network_takes_and_no_minutes() -> None:
    first = rank(0, phase="first-call", size_bytes=1 << 30, longest_call_s=0.0)
    assert allowed_s(first, LIMITS) > 280
    assert 25 < allowed_s(first, on_gpus(LIMITS)) < 35


ECC = (
    "node03:7:9 [2] transport/net.cc:1251 NCCL WARN Cuda failure 217 'uncorrectable ECC error encountered'\n"
)
IB = "node03:7:9 [2] NCCL WARN NET/IB: Got completion from peer 192.0.2.4<1> with status=12 opcode=0 len=0\n"


def test_an_error_that_nccl_only_logged_is_the_hanging_ranks_own() -> None:
    """Without torch's handling of asynchronous errors the call hangs on all ranks, and raises nowhere."""
    waiting = [rank(n, idle_s=30.0) for n in range(4)]
    waiting[2] = rank(2, idle_s=30.0, last_words=ECC)
    (failure,) = judge(waiting, HOSTS, HEARD)
    assert (failure.rank, failure.state) == (2, "error")
    assert "uncorrectable ECC error encountered" in failure.detail


def test_what_nccl_said_of_the_network_is_told_and_accuses_nobody() -> None:
    waiting = [rank(n, idle_s=30.0) for n in range(4)]
    waiting[2] = rank(2, idle_s=30.0, last_words=IB)
    found = judge(waiting, HOSTS, HEARD)
    assert [failure.state for failure in found] == ["stuck"] * 4
    assert ["with status=12" in failure.detail for failure in found] == [False, False, True, False]
