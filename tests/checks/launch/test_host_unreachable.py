"""NC115 host-unreachable."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot, Unreached, UnreachedCause
from tests.builders import cluster, with_silent
from tests.checks.running import finding, is_silent, run


def without(*ones: Unreached) -> Snapshot:
    snapshot = cluster(4)
    for unreached in ones:
        snapshot = with_silent(snapshot, unreached.host)
    return replace(snapshot, unreached=ones)


def test_all_were_reached_or_nobody_was_to_be() -> None:
    assert run("host-unreachable", replace(cluster(4), unreached=())).outcome == "passed"
    assert run("host-unreachable", cluster(4)).outcome == "not_applicable"


@pytest.mark.parametrize("cause", get_args(UnreachedCause))
def test_every_cause_has_its_words_and_its_fix(cause: UnreachedCause) -> None:
    found = finding("host-unreachable", without(Unreached("node03", 2, cause, "ssh's own words", 3.1)))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "ssh's own words" in found.summary
    assert found.fixes[0].text
    assert "{" not in f"{found.summary} {found.fixes[0].text} {found.fixes[0].commands}"


def test_hosts_alike_are_one_finding_and_others_are_not() -> None:
    refused = "ssh: connect to host {} port 22: Connection refused"
    ones = [
        Unreached(host, rank, "refused", refused.format(host))
        for rank, host in ((1, "node02"), (2, "node03"))
    ]
    denied = Unreached("node04", 3, "denied", "Permission denied (publickey).")
    found = run("host-unreachable", without(*ones, denied)).findings
    assert [one.hosts for one in found] == [("node02", "node03"), ("node04",)]


def test_node_silent_does_not_say_it_again() -> None:
    assert is_silent("node-silent", without(Unreached("node03", 2, "refused", "Connection refused")))
    one_more = with_silent(without(Unreached("node03", 2, "refused", "Connection refused")), "node04")
    assert finding("node-silent", one_more).hosts == ("node04",)
