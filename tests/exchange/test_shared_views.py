"""What a node says of a shared folder; of those it was not asked for nothing is taken."""

from __future__ import annotations

from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.shared_views import SharedFolder, views_of
from tests.fact_builders import host_of, launch


def test_only_paths_that_were_asked_for_and_known_tickets_are_taken() -> None:
    agent = Member(1, launch(0, 2), host_of(0))
    told = (SharedFolder("/s", None, (1, 9)), SharedFolder("/etc", None, (1,)))
    (view,) = views_of(agent, {1: "node01"}, told, ("/s",))
    assert (view.path, view.saw) == ("/s", ("node01",))
