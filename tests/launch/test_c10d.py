"""The name that torch's c10d rendezvous gives to the workers; that every node is asked is shown in the lab."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.launch.c10d import first_by_name
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Names
from tests.builders import cluster, with_facts
from tests.fact_builders import launch


def test_the_first_in_the_order_of_the_names() -> None:
    seen = cluster(3)
    for host, fqdn in (("node01", "c.x"), ("node02", "a.x"), ("node03", "b.x")):
        seen = with_facts(seen, host, names=Names(host, fqdn, ()))
    assert first_by_name(seen) == ("a.x", "node02")
    local = replace(launch(2, 3), local_addr="10.0.0.3")
    assert first_by_name(with_facts(seen, "node03", launch=local)) == ("10.0.0.3", "node03")


def test_with_one_name_unknown_the_first_is_too() -> None:
    slow = Names("node02", Missing("timeout", "no answer"), ())
    told = first_by_name(with_facts(cluster(3), "node02", names=slow))
    assert isinstance(told, Missing)
    assert "node02" in told.detail
