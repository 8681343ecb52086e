"""What NCCL chooses, folded over equal nodes; never a guess where it is not known."""

from __future__ import annotations

from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.nccl_text import nccl_lines
from ncclcheck.report.page import draw
from tests.builders import cluster, with_choice, with_silent, without
from tests.report.reports import report


def shown(snapshot: Snapshot, verbose: int = 0) -> list[str]:
    return draw(nccl_lines(report(snapshot=snapshot), verbose), width=None, color=False).splitlines()


def test_equal_nodes_are_one_line() -> None:
    assert shown(cluster(4)) == [
        "NCCL would use",
        "  eth0 on node[01-04] (NCCL 2.27.5, asked of the library itself)",
    ]


def test_a_node_where_it_fails_says_why() -> None:
    lines = shown(with_choice(cluster(4), "node03", None, None))
    assert "  nothing, it would fail on node03 (NCCL 2.27.5, asked of the library itself)" in lines
    assert any("no socket interface found" in line for line in lines)


def test_a_node_where_it_is_not_known_is_named() -> None:
    lines = shown(without(cluster(4), "node02", "nccl"))
    assert "  eth0 on node[01,03-04] (NCCL 2.27.5, asked of the library itself)" in lines
    assert lines[-1].startswith("  unknown on node02: timeout: nccl of the node")


def test_a_silent_node_is_no_question() -> None:
    assert not [line for line in shown(with_silent(cluster(4), "node04")) if "node04" in line]


def test_verbose_gives_each_node_its_address_library_and_reason() -> None:
    text = "\n".join(shown(cluster(2), verbose=1))
    assert "eth0 10.0.0.2 on node02" in text
    assert "library /opt/venv" in text
