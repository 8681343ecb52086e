"""When a node is drained or resumed: scripted histories, whose reasons count, and how many at most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.cli.slurm_health.decision import (
    OWN_REASON,
    Result,
    SlurmNode,
    decide,
    health_of,
    is_beyond,
    may_drain,
    most_drained,
)

IDLE = SlurmNode("node1", frozenset({"IDLE"}))
OURS = SlurmNode(
    "node1", frozenset({"IDLE", "DRAIN"}), f"{OWN_REASON}1 error: gpu-ecc on node1", "2026-11-22T10:00:00"
)


def results(history: str) -> list[Result]:
    """`bgb`: bad, good, bad; the last is the present one."""
    return [Result(float(at), letter == "g") for at, letter in enumerate(history)]


def played(history: str, node: SlurmNode = IDLE) -> list[str]:
    """What is done after each result, with Slurm doing as it is told."""
    done: list[str] = []
    for end in range(1, len(history) + 1):
        action = decide(results(history[:end]), node)
        done.append(action.kind)
        if action.kind == "drain":
            node = OURS
        elif action.kind == "resume":
            node = IDLE
    return done


@pytest.mark.parametrize(
    ("history", "at"),
    [
        ("gggg", {}),
        ("b", {}),
        ("bb", {1: "drain"}),
        ("bgb", {2: "drain"}),
        ("bggbggb", {}),  # flapping, but never two of three
        ("bbb", {1: "drain"}),
        ("bbggg", {1: "drain", 4: "resume"}),
        ("bbggbggg", {1: "drain", 7: "resume"}),
        ("bbgggb", {1: "drain", 4: "resume"}),
        ("bbgggbb", {1: "drain", 4: "resume", 6: "drain"}),
    ],
)
def test_a_node_is_drained_after_two_bad_of_three_and_resumed_after_three_good(
    history: str, at: dict[int, str]
) -> None:
    assert played(history) == [at.get(number, "none") for number in range(len(history))]


@pytest.mark.parametrize(
    "reason",
    [
        "disk replaced tomorrow",
        "",
        "ncclcheck isolate: slow",  # an administrator pasted our line
        "ncclcheck: node problem: 1 error",  # the prolog
        "see ncclcheck node: 1 error",
    ],
)
@pytest.mark.parametrize("history", ["bbb", "ggg", "bgb"])
def test_a_drain_that_is_not_ours_stays_with_its_reason(reason: str, history: str) -> None:
    node = SlurmNode("node1", frozenset({"IDLE", "DRAIN"}), reason)
    assert decide(results(history), node).kind == "none"


@pytest.mark.parametrize("states", [{"DOWN"}, {"DOWN", "DRAIN"}, {"IDLE", "POWERED_DOWN"}, {"FAIL"}])
def test_a_node_that_is_away_is_left_alone(states: set[str]) -> None:
    for reason in ("", OURS.reason, "Not responding"):
        node = SlurmNode("node1", frozenset(states), reason)
        assert decide(results("bbb"), node).kind == decide(results("ggg"), node).kind == "none"


def test_a_note_of_an_administrator_is_not_overwritten() -> None:
    node = SlurmNode("node1", frozenset({"IDLE"}), "loaned to the other team")
    assert decide(results("bbb"), node).kind == "none"


@given(st.text("bg", min_size=1, max_size=30))
def test_a_good_run_never_drains_and_a_bad_one_never_resumes(history: str) -> None:
    for letter, kind in zip(history, played(history), strict=True):
        assert kind != ("drain" if letter == "g" else "resume")


def test_what_says_nothing_about_the_node_is_neither_good_nor_bad() -> None:
    health = {code: health_of(code) for code in (0, 1, 2, 3, 4, 70, 130)}
    assert [code for code, told in health.items() if told == "unknown"] == [2, 3, 70, 130]
    assert health[0] == "good"
    assert health[1] == health[4] == "bad"


def fleet(drained: int, nodes: int) -> list[SlurmNode]:
    ours = [
        SlurmNode(f"node{number:03}", OURS.states, OURS.reason, f"2026-11-22T10:00:{number // 3:02}")
        for number in range(drained)
    ]
    return ours + [SlurmNode(f"node{number:03}", IDLE.states) for number in range(drained, nodes)]


@pytest.mark.parametrize(
    ("nodes", "percent", "most"),
    [(1, 10, 1), (9, 10, 1), (16, 10, 1), (30, 10, 3), (1024, 10, 102), (10, 100, 10)],
)
def test_a_share_of_the_fleet_may_be_drained_and_one_node_at_least(
    nodes: int, percent: int, most: int
) -> None:
    assert most_drained(nodes, percent) == most
    assert may_drain(fleet(most - 1, nodes), percent)
    if most < nodes:
        assert not may_drain(fleet(most, nodes), percent)


def test_nodes_that_an_administrator_drained_do_not_count() -> None:
    drained = [SlurmNode(f"node{number}", frozenset({"DRAIN", "IDLE"}), "moved") for number in range(9)]
    assert may_drain([*drained, IDLE], 10)


@given(st.permutations(range(40)), st.integers(1, 50))
def test_of_many_drained_at_once_exactly_the_permitted_ones_stay(order: list[int], percent: int) -> None:
    nodes = fleet(20, 40)
    shuffled = [nodes[number] for number in order]
    kept = {node.name for node in nodes if node.is_ours and not is_beyond(node.name, shuffled, percent)}
    assert len(kept) == min(20, most_drained(40, percent))
    assert max(kept) == f"node{len(kept) - 1:03}"  # the earliest, then by name
