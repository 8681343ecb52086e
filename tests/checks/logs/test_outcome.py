"""Which cause comes first: sure before likely, early before late, and never what another explains."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import Confidence, Suspect
from ncclcheck.checks.logs._outcome import explained, ranking, stuck
from ncclcheck.model.events import Log, LogFile, LogPosition, Remark
from ncclcheck.model.finding import CheckRun, Severity
from tests.checks.logs.explaining import explain, read

PLACES = [LogPosition("job.log", line) for line in range(1, 6)]
LOG = Log((LogFile("job.log", 1, 5),), tuple(Remark(place, "x", "failed") for place in PLACES))


def suspect(
    slug: str, line: int, confidence: Confidence = "certain", explains: tuple[str, ...] = ()
) -> Suspect:
    severity: Severity = "warning" if confidence == "possible" else "error"
    return Suspect(
        severity,
        slug,
        (),
        code=slug,
        slug=slug,
        confidence=confidence,
        at=LogPosition("job.log", line),
        explains=explains,
    )


def order(*suspects: Suspect) -> list[str]:
    return [ranked.slug for ranked in ranking(LOG, suspects)]


def test_the_earlier_of_equally_sure_ones() -> None:
    assert order(suspect("late", 4), suspect("early", 2)) == ["early", "late"]


def test_the_surer_one_wins_over_the_earlier() -> None:
    assert order(suspect("maybe", 1, "likely"), suspect("sure", 4)) == ["sure", "maybe"]


def test_what_is_explained_comes_last() -> None:
    assert order(suspect("effect", 1), suspect("cause", 4, explains=("effect",))) == ["cause", "effect"]


def test_a_possibility_takes_no_certainty_away() -> None:
    assert order(suspect("sure", 3), suspect("maybe", 1, "possible", ("sure",))) == ["sure", "maybe"]


def test_two_that_explain_each_other_are_told_apart_by_their_place() -> None:
    assert order(suspect("b", 4, explains=("a",)), suspect("a", 2, explains=("b",))) == ["a", "b"]


def test_one_error_and_the_rest_are_candidates() -> None:
    runs = [
        CheckRun(found.code, found.slug, "", "found", findings=(found,))
        for found in (suspect("b", 4), suspect("a", 2))
    ]
    result = explained(LOG, runs)
    assert [(finding.slug, finding.severity) for finding in result.findings] == [
        ("a", "error"),
        ("b", "warning"),
    ]
    assert type(result.findings[0]).__name__ == "Finding"


def test_the_first_rank_that_fails_wins_over_the_loudest() -> None:
    noise = "".join(
        f"[rank{rank}]: RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.1]:5\n"
        for rank in range(1, 40)
    )
    result = explain("[rank40]: ValueError: the cause\n" + noise)
    assert (result.findings[0].slug, result.findings[0].hosts) == ("rank-exception", ("rank 40",))
    again = explain(noise + "[rank40]: ValueError: the cause\n")
    assert (again.findings[0].slug, again.findings[0].hosts) == ("rank-exception", ("rank 40",))


def test_a_communicator_that_was_begun_only() -> None:
    log = read("n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x2 - Init START\n")
    assert len(stuck(log)) == 1
