"""Tails, flaps, wrong data and lost ranks."""

from __future__ import annotations

from ncclcheck.measure.soak.incidents import Incidents
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakEnd, SoakLost, SoakTail
from tests.soak_builders import HOSTS, soak_block


def test_tails_of_one_host_are_one_event_with_their_number_and_the_longest() -> None:
    incidents = Incidents()
    for number, time_us in ((3, 50_000.0), (9, 90_000.0), (12, 9_000.0)):
        block = soak_block(number, tails=(SoakTail(time_us, 1, "stopped", time_us),))
        incidents.add_tails(block, 10.0 * number, 1000.0, HOSTS)
    (event,) = incidents.events()
    assert (event.kind, event.hosts, event.from_s, event.to_s) == ("tail", ("node02",), 30.0, 100.0)
    assert event.summary.startswith("2 iterations of more than 10 times the usual 1 ms, 90 ms at most")
    assert "rank 1 on node02 did not run" in event.summary
    assert incidents.count == 2


def test_a_tail_without_a_culprit_names_no_host() -> None:
    incidents = Incidents()
    incidents.add_tails(soak_block(1, tails=(SoakTail(50_000.0, None, "unknown", 0.0),)), 10.0, 1000.0, HOSTS)
    (event,) = incidents.events()
    assert event.hosts == ()
    assert event.summary.startswith("1 iteration ")


def test_a_link_that_flaps_is_named_with_its_interface() -> None:
    incidents = Incidents()
    for number in (4, 5):
        nodes = (NodeCounts("node03", {"eth0 carrier_changes": 1, "eth0 rx_errors": 5}),)
        incidents.add(soak_block(number, nodes=nodes), 10.0 * number, HOSTS)
    (event,) = incidents.events()
    assert (event.kind, event.hosts) == ("flap", ("node03",))
    assert "eth0 on node03 changed 2 times" in event.summary


def test_wrong_data_name_the_hosts_of_the_ranks_that_hold_them() -> None:
    incidents = Incidents()
    incidents.add(soak_block(4, wrong=3, wrong_ranks=(0, 2)), 40.0, HOSTS)
    (event,) = incidents.events()
    assert (event.kind, event.hosts) == ("wrong", ("node01", "node03"))


def test_the_end_tells_who_was_lost() -> None:
    (event,) = Incidents.lost(SoakEnd(0.0, False, "", (SoakLost(2, "node03", "died", "killed"),)), 70.0)
    assert (event.kind, event.hosts, event.to_s) == ("died", ("node03",), None)
