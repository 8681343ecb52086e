"""Which nodes are lost when several say nothing (test_watch.py has the decision with the ranks)."""

from __future__ import annotations

from ncclcheck.bench.silence import Network, lost_hosts

HOSTS = ("node01", "node02", "node03")
UNHEARD = {"node01": 0.1, "node02": 6.0, "node03": 6.4}
OTHERS = ("node02", "node03")


def test_one_that_is_silent_is_lost_and_what_its_kernel_says_is_told() -> None:
    found = lost_hosts(HOSTS, ["node03"], UNHEARD, Network(kernel_answers={"node03": True}))
    assert found is not None
    assert list(found) == ["node03"]
    assert "no word from its node for 6 s, though its kernel answers" in found["node03"]


def test_where_all_others_and_their_kernels_are_silent_node_0_lost_its_network() -> None:
    for network in (Network(), Network(kernel_answers=dict.fromkeys(OTHERS, False))):
        found = lost_hosts(HOSTS, OTHERS, UNHEARD, network)
        assert found is not None
        assert list(found) == ["node01"]


def test_where_one_kernel_answers_or_something_arrived_the_others_are_lost() -> None:
    for network in (Network(kernel_answers={"node02": None, "node03": True}), Network(delivers=True)):
        found = lost_hosts(HOSTS, OTHERS, UNHEARD, network)
        assert found is not None
        assert list(found) == list(OTHERS)


def test_node_0_that_does_not_hear_itself_is_the_lost_one_though_a_kernel_answers() -> None:
    found = lost_hosts(HOSTS, HOSTS, dict.fromkeys(HOSTS, 7.0), Network(kernel_answers={"node02": True}))
    assert found is not None
    assert list(found) == ["node01"]


def test_while_a_kernel_is_asked_nobody_is_named() -> None:
    asked = {"node02": False, "node03": None}
    assert lost_hosts(HOSTS, OTHERS, UNHEARD, Network(kernel_answers=asked)) is None


def test_the_only_other_node_is_named_and_not_node_0() -> None:
    found = lost_hosts(("node01", "node02"), ["node02"], UNHEARD, Network())
    assert found is not None
    assert list(found) == ["node02"]
