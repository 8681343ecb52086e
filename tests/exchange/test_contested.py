"""Two who answer for one place, and messages that were replaced."""

from __future__ import annotations

from ncclcheck.exchange.announcements import Announced
from ncclcheck.exchange.contested import of_another_run, replaced_reports, with_late_claims, without_ghosts
from ncclcheck.exchange.messages import Hello
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.codec import encode
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Silent, Snapshot


def launch(rank: int) -> Launch:
    return Launch("flags", rank, 3, 0, 1, rank, 3, "node1", 29500)


def member(ticket: int, rank: int, host: str) -> Member:
    return Member(ticket, launch(rank), host)


FIRST, SECOND = member(1, 0, "node1"), member(2, 1, "node2")


def announced(facts: str) -> bytes:
    return encode(Announced("1", "1", (), (), facts))


def test_who_only_says_hello_for_a_place_is_left_out_and_its_node_not_accused() -> None:
    ghost = member(3, 1, "evil")
    members, contested = without_ghosts((FIRST, ghost, SECOND), {1: b"", 2: b""})
    assert members == (FIRST, SECOND)
    assert [(place.host, place.node_rank, place.what) for place in contested] == [("node2", 1, "hello")]
    assert "evil" in contested[0].detail


def test_a_rank_that_two_processes_have_is_left_to_the_check_of_ranks() -> None:
    twins = FIRST, SECOND, member(3, 1, "node3")
    assert without_ghosts(twins, {1: b"", 2: b"", 3: b""}) == (twins, ())
    assert without_ghosts((FIRST, SECOND), {1: b""}) == ((FIRST, SECOND), ())


def test_facts_that_are_not_those_announced_are_left_out() -> None:
    reports = {1: b"facts", 2: b"forged"}
    told = {1: announced(digest_of(b"facts")), 2: announced(digest_of(b"facts"))}
    kept, contested = replaced_reports((FIRST, SECOND), reports, told)
    assert kept == {1: b"facts"}
    assert [(place.host, place.what) for place in contested] == [("node2", "facts")]
    for silent in ({}, {1: b"garbage", 2: announced("")}):
        assert replaced_reports((FIRST, SECOND), reports, silent) == (reports, ())


def test_facts_that_are_those_announced_when_they_are_read_again_are_taken() -> None:
    own = digest_of(b"facts")
    asked: list[tuple[int, str]] = []

    def again(ticket: int, digest: str) -> bytes:
        asked.append((ticket, digest))
        return b"facts"

    found = {1: b"facts", 2: b"forged"}
    told = {1: announced(own), 2: announced(own)}
    assert replaced_reports((FIRST, SECOND), found, told, again) == ({1: b"facts", 2: b"facts"}, ())
    assert asked == [(2, own)]


def test_who_was_told_another_nonce_is_not_of_this_run() -> None:
    hellos = {ticket: Hello("1", "1", "h", launch(0), run) for ticket, run in ((1, "a"), (2, "a"), (3, "b"))}
    assert list(of_another_run(hellos, 1)) == [3]
    assert of_another_run(hellos, None) == {}


def test_late_node_is_no_duplicate_of_a_silent_claim_to_its_place() -> None:
    taken = Snapshot(
        nodes=(),
        claims=(launch(0), launch(1)),
        claim_hosts=("node1", "evil"),
        silent=(Silent("evil", 1, "facts", 15.0),),
    )
    seen = with_late_claims(taken, (Hello("1", "1", "node2", launch(1)), Hello("1", "1", "node4", launch(0))))
    assert seen.claim_hosts == ("node1", "evil", "node4")
    assert [(place.host, place.node_rank) for place in seen.contested] == [("node2", 1)]
