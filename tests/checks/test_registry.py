"""The registry: which checks there are, which of them run, and what becomes of what they answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.registry import (
    Answer,
    Body,
    Check,
    Selection,
    all_checks,
    check,
    matching,
    run_check,
    run_checks,
)
from ncclcheck.model.errors import UsageError
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import CheckRun, Finding, NotApplicable, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, left_alone, seen_alone, with_interfaces, with_outcome, without
from tests.fact_builders import GONE

ROOT = Path(__file__).parents[2]


def declared(body: Body, *, needs: tuple[str, ...] = (), nodes: int = 1, joined: bool = False) -> Check:
    return Check("NC999", "made-up", "Made up", needs, nodes, joined, "", body)


def answering(*answers: Answer) -> Body:
    return lambda _: answers


def fault(summary: str = "it is broken", severity: Severity = "error") -> Finding:
    return Finding(severity, summary, ("node01",))


def outcome(one: Check, snapshot: Snapshot | None = None) -> tuple[str, str]:
    run = run_check(one, cluster(2) if snapshot is None else snapshot)
    return run.outcome, run.reason


# one check


def test_no_answer_is_a_pass() -> None:
    assert outcome(declared(answering())) == ("passed", "")


def test_a_finding_gets_the_code_of_its_check_and_the_worst_comes_first() -> None:
    run = run_check(declared(answering(fault("a", "info"), fault("b"), fault("c", "warning"))), cluster(2))
    assert run.outcome == "found"
    assert [(finding.summary, finding.code, finding.slug) for finding in run.findings] == [
        ("b", "NC999", "made-up"), ("c", "NC999", "made-up"), ("a", "NC999", "made-up"),
    ]  # fmt: skip


def test_what_is_not_known_is_no_pass_and_names_its_hosts() -> None:
    body = answering(NotApplicable("no"), NotKnown("no answer", ("node01", "node02")), NotKnown("nor here"))
    assert outcome(declared(body)) == ("unknown", "node01,node02: no answer; nor here")


def test_a_finding_stands_beside_what_is_not_known() -> None:
    assert outcome(declared(answering(NotKnown("half unread"), fault()))) == ("found", "half unread")


def test_a_question_that_does_not_arise_is_not_applicable() -> None:
    assert outcome(declared(answering(NotApplicable("no GPUs")))) == ("not_applicable", "no GPUs")


def test_a_section_it_needs_and_that_is_missing_makes_it_unknown() -> None:
    one = declared(answering(), needs=("gpus", "names"))
    assert outcome(one) == ("passed", "")
    assert outcome(one, without(cluster(2), "node02", "gpus")) == (
        "unknown",
        "node02: gpus: timeout: no answer in 10 s",
    )
    assert outcome(one, without(cluster(2), "node02", "limits")) == ("passed", "")


def test_that_a_section_is_missing_is_said_once() -> None:
    because = NotKnown("its GPUs are not known", ("node02",), "gpus")
    snapshot = without(cluster(2), "node02", "gpus")
    assert outcome(declared(answering(because), needs=("gpus",)), snapshot)[1] == f"node02: gpus: {GONE}"
    assert outcome(declared(answering(because)), snapshot)[1] == "node02: its GPUs are not known"


@pytest.mark.parametrize("section", NodeFacts.__struct_fields__)
def test_no_check_says_twice_that_a_section_it_needs_is_missing(section: str) -> None:
    snapshot = without(cluster(2), "node02", section)
    reasons = {check.slug: run_check(check, snapshot).reason for check in all_checks()}
    assert not {slug: reason for slug, reason in reasons.items() if reason.count(GONE.detail) > 1}


def test_with_no_node_at_all_nothing_passes() -> None:
    assert outcome(declared(answering()), Snapshot(nodes=())) == ("unknown", "no node reported")


def test_a_check_of_several_nodes_is_not_asked_of_one() -> None:
    one = declared(answering(fault()), nodes=2)
    assert outcome(one, cluster(1)) == ("not_applicable", "needs 2 nodes, this job has 1")
    assert outcome(one, cluster(2))[0] == "found"


def test_a_check_of_nodes_that_met_is_unknown_where_they_did_not() -> None:
    one = declared(answering(fault()), joined=True)
    assert outcome(one, seen_alone(cluster(2), "node02")) == ("unknown", "the nodes did not meet")
    assert outcome(one)[0] == "found"


def test_a_check_of_nodes_that_met_and_lost_node_0_says_so() -> None:
    one = declared(answering(fault()), joined=True)
    told = "node 0 (node01) was lost during the benchmark"
    assert outcome(one, left_alone(cluster(2), "node02")) == ("unknown", told)


def test_a_check_that_raises_after_its_first_answer_crashed_and_says_where() -> None:
    def body(_: Snapshot) -> Iterator[Answer]:
        yield fault()
        raise KeyError("eth0")

    run = run_check(declared(body), cluster(2))
    assert (run.outcome, run.findings) == ("crashed", ())
    assert run.reason.startswith("KeyError: 'eth0' (body, line ")


def test_the_docstring_is_the_manual() -> None:
    @check("NC998", "documented", "Documented", needs=["gpus"])
    def body(_: Snapshot) -> Iterator[Answer]:
        """What it is.

        ## Why it matters
        """
        yield from ()

    assert body in {one.body for one in (body.__ncclcheck_check__,)}  # type: ignore[attr-defined]
    assert body.__ncclcheck_check__.manual.startswith("What it is.\n")  # type: ignore[attr-defined]
    assert body not in {all_check.body for all_check in all_checks()}  # no file of this package declares it


# many checks


def by_slug(runs: tuple[CheckRun, ...]) -> dict[str, CheckRun]:
    return {run.slug: run for run in runs}


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (["NC101"], {"NC101"}),
        (["nc101", "node-silent", "node_silent", "NODE-SILENT"], {"NC101"}),
        (["NC40"], {f"NC40{number}" for number in range(1, 10)}),
        ([], set()),
    ],
)
def test_checks_go_by_code_prefix_and_slug_in_any_case(names: list[str], codes: set[str]) -> None:
    assert matching(names) == codes


def test_a_prefix_means_the_whole_family() -> None:
    assert matching(["NC2"]) == {
        all_check.code for all_check in all_checks() if all_check.code.startswith("NC2")
    }
    assert len(matching(["NC2"])) > 5


@pytest.mark.parametrize("name", ["", " ", "NC999", "node", "node-silen", "101", "NC101 ", "*"])
@pytest.mark.parametrize("where", ["select", "ignore", "demote"])
def test_an_unknown_name_is_wrong_usage_and_no_empty_selection(where: str, name: str) -> None:
    with pytest.raises(UsageError, match="unknown check"):
        run_checks(cluster(2), replace(Selection(), **{where: ("NC101", name)}))


def test_every_check_has_its_run_whether_it_was_wanted_or_not() -> None:
    runs = run_checks(cluster(3), Selection(select=("NC2",), ignore=("NC202",)))
    assert [run.code for run in runs] == [all_check.code for all_check in all_checks()]
    for run in runs:
        expected = "--ignore" if run.code == "NC202" else "" if run.code[:3] == "NC2" else "not in --select"
        assert (run.outcome == "ignored", run.reason) == (bool(expected), expected)


def test_what_is_ignored_is_not_found() -> None:
    broken = with_outcome(cluster(2), "filtered", [("node01", "node02"), ("node02", "node01")])
    assert by_slug(run_checks(broken, Selection()))["peer-filtered"].outcome == "found"
    ignored = by_slug(run_checks(broken, Selection(ignore=("peer-filtered",))))["peer-filtered"]
    assert (ignored.outcome, ignored.findings) == ("ignored", ())


def test_a_demoted_error_is_a_warning_and_the_others_stay_errors() -> None:
    broken = with_outcome(cluster(2), "filtered", [("node01", "node02"), ("node02", "node01")])
    broken = with_interfaces(broken, "node02")  # only lo is left
    before = by_slug(run_checks(broken, Selection()))
    after = by_slug(run_checks(broken, Selection(demote=("NC209",))))
    assert {finding.severity for finding in before["peer-filtered"].findings} == {"error"}
    assert {finding.severity for finding in after["peer-filtered"].findings} == {"warning"}
    assert {slug for slug in before if before[slug] != after[slug]} == {"peer-filtered"}


# checks from files: a process of its own, whose package has one more folder

MORE = """
from ncclcheck.checks.registry import check

@check({code!r}, {slug!r}, "One more")
def body(snapshot):
    {body}
"""
PROGRAM = """
import json, sys
import ncclcheck.checks
from ncclcheck.checks.registry import Selection, run_checks
from tests.fact_builders import GONE
from tests.builders import cluster

ncclcheck.checks.__path__.append(sys.argv[1])
print(json.dumps([[run.code, run.outcome, run.reason] for run in run_checks(cluster(4), Selection())]))
"""
WithFiles = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_with(tmp_path: Path) -> WithFiles:
    """All checks over a healthy cluster, with the files of that name and text among them."""

    def run(**files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        argv = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_a_file_is_all_it_takes_and_its_crash_takes_no_other_answer_away(run_with: WithFiles) -> None:
    done = run_with(breaks=MORE.format(code="NC000", slug="breaks", body="return 1 / 0"))
    runs: list[list[Any]] = json.loads(done.stdout)
    assert [code for code, *_ in runs] == ["NC000", *(all_check.code for all_check in all_checks())]
    assert runs[0][1:] == ["crashed", "ZeroDivisionError: division by zero (body, line 6)"]
    assert {outcome for _, outcome, _ in runs[1:]} <= {"passed", "unknown", "not_applicable"}
    assert ["NC101", "passed", ""] in runs


@pytest.mark.parametrize(("code", "slug"), [("NC101", "new-slug"), ("NC999", "node-silent")])
def test_a_code_or_slug_that_is_taken_is_refused(run_with: WithFiles, code: str, slug: str) -> None:
    done = run_with(twice=MORE.format(code=code, slug=slug, body="yield from ()"))
    assert done.returncode != 0
    assert "is declared twice" in done.stderr
    assert code in done.stderr or slug in done.stderr


def test_a_check_that_is_only_imported_is_not_declared_again(run_with: WithFiles) -> None:
    done = run_with(
        first=MORE.format(code="NC999", slug="first", body="return ()"),
        second="from ncclcheck.checks.first import body\n",
    )
    assert [code for code, *_ in json.loads(done.stdout)].count("NC999") == 1
