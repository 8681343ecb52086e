"""Files that differ, in words."""

from __future__ import annotations

from ncclcheck.checks.software._files import difference_text, file_evidence
from ncclcheck.model.snapshot import CodeDifference, FileNames

NONE = FileNames(0)


def test_a_sentence_counts_and_names_the_first_files() -> None:
    four = FileNames(4, ("a.py", "b.py", "c.py", "d.py"))
    text = difference_text(CodeDifference("/p", "node02", "node01", four, FileNames(1, ("e.py",)), NONE))
    assert (
        text == "on node02 4 files differ from node01 (a.py, b.py, c.py and 1 more), 1 file is missing (e.py)"
    )


def test_files_that_became_equal_are_told_as_that() -> None:
    assert "a moment later" in difference_text(CodeDifference("/p", "node02", "node01", NONE, NONE, NONE))


def test_evidence_has_every_name_that_is_known() -> None:
    (piece,) = file_evidence(CodeDifference("/p", "node02", "node01", NONE, NONE, FileNames(12, ("a", "b"))))
    assert (piece.hosts, piece.observed) == (("node02",), "12: a, b and 10 more")
