"""Every node's way to the master."""

from __future__ import annotations

from typing import get_args

from ncclcheck.checks.launch._master import another_port, not_seen, saw, sightings
from ncclcheck.model.facts import MasterOutcome
from tests.builders import cluster, with_master, with_silent


def test_facts_and_words_of_silent_nodes_are_in_order_of_rank() -> None:
    seen = sightings(with_silent(cluster(4), "node02", "refused"))
    assert [(sighting.host, sighting.path.outcome) for sighting in seen] == [
        ("node01", "serving"),
        ("node02", "refused"),
        ("node03", "answered"),
        ("node04", "answered"),
    ]


def test_a_target_has_its_address_where_it_is_a_name() -> None:
    (seen,) = saw(with_master(cluster(4), "node03", "refused", name="head"), "refused")
    assert seen.target == "head:29500 (10.0.0.1)"


def test_every_outcome_has_its_stage() -> None:
    for outcome in get_args(MasterOutcome):
        broken = with_master(cluster(4), "node03", outcome)
        assert [
            one for one in not_seen(broken, "unresolvable") if outcome not in {"torch-broken", "torch-late"}
        ] == []


def test_a_proposed_port_is_one() -> None:
    assert (another_port(29500), another_port(65535)) == (29501, 65534)
