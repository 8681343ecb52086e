"""Marks in shared folders, between two nodes of one store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.shared_views import SharedFolder, views_of
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import serve
from ncclcheck.facts.storage.run_marks import mark_content, mark_name
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import Context
from ncclcheck.run.options import RunOptions
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.share import (
    Shared,
    ShareOrder,
    follow_share,
)
from tests.fact_builders import host_of, launch

NONCE = "0123456789abcdef" * 2


@pytest.fixture
def store() -> Store:
    served = serve(0, "test/", Deadline(60))
    assert not isinstance(served, Missing), served
    return served


def both(store: Store, order: ShareOrder, paths: dict[int, tuple[str, ...]]) -> dict[int, Shared]:
    """What the nodes of those tickets answer, each with its own command line."""
    answers: dict[int, Shared] = {}

    def follow(ticket: int) -> None:
        options = RunOptions("preflight", shared_paths=paths[ticket])
        context = Context(options, {}, launch(0, 2), "node01", Deadline(60), lambda _: None)
        answers[ticket] = follow_share(Participant(context, store, ticket, NONCE), order)

    threads = [threading.Thread(target=follow, args=(ticket,)) for ticket in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def test_nodes_see_each_other_and_nothing_stays(store: Store, tmp_path: Path) -> None:
    path = str(tmp_path)
    answers = both(store, ShareOrder((path,), (1, 2)), {1: (path,), 2: (path,)})
    for answer in answers.values():
        (folder,) = answer.folders
        assert (folder.wrote, folder.saw, folder.left) == (None, (1, 2), "")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_where_the_own_command_line_says_nothing(store: Store, tmp_path: Path) -> None:
    path = str(tmp_path)
    answers = both(store, ShareOrder((path,), (1,)), {1: ()})
    (folder,) = answers[1].folders
    assert isinstance(folder.wrote, Missing)
    assert folder.wrote.missing == "denied"
    assert list(tmp_path.iterdir()) == []


def test_a_mark_does_not_tell_the_nonce() -> None:
    assert NONCE[:8] not in mark_name(NONCE, 1) + mark_content(NONCE, 1)
    assert mark_name(NONCE, 1) != mark_name(NONCE, 2)
    assert mark_content(NONCE, 1) != mark_content(NONCE, 2)


def test_tickets_become_hosts_and_silence_is_missing() -> None:
    agents = tuple(Member(rank + 1, launch(rank, 2), host_of(rank)) for rank in range(2))
    hosts = {agent.ticket: agent.host for agent in agents}
    told = (SharedFolder("/s", None, (1, 2, 9), 0.5),)
    (view,) = views_of(agents[0], hosts, told, ("/s",))
    assert (view.host, view.saw, view.waited_s) == ("node01", ("node01", "node02"), 0.5)
    for answer in (Missing("timeout", "silent"), Missing("error", "refused"), ()):
        (view,) = views_of(agents[1], hosts, answer, ("/s",))
        assert isinstance(view.saw, Missing)
        assert isinstance(view.wrote, Missing)
