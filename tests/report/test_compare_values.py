"""Versions, settings and choices that changed."""

from __future__ import annotations

from typing import Any

from ncclcheck.model.fact import Missing
from ncclcheck.report.compare_values import value_changes
from tests.builders import cluster, with_choice, with_environment, with_software, without
from tests.report.reports import ADVICE, report


def changed(snapshot: Any = None, **options: Any) -> list[tuple[str, str, str, tuple[str, ...]]]:
    new = report(snapshot=snapshot or cluster(4), **options)
    return [
        (change.what, change.before, change.after, change.hosts) for change in value_changes(report(), new)
    ]


def test_versions_and_settings_are_told_with_their_hosts() -> None:
    snapshot = with_software(
        with_environment(cluster(4), "node02", NCCL_DEBUG="INFO"), "node03", torch="2.9.1"
    )
    assert changed(snapshot) == [
        ("NCCL_DEBUG", "WARN", "INFO", ("node02",)),
        ("torch", "2.9.0", "2.9.1", ("node03",)),
    ]


def test_a_choice_that_is_another_one_is_told() -> None:
    assert ("NCCL's interface", "eth0", "lo", ("node02",)) in changed(
        with_choice(cluster(4), "node02", "lo", "127.0.0.1")
    )


def test_what_could_not_be_read_is_not_known_and_not_changed_to_nothing() -> None:
    gone = Missing("error", "no driver")
    assert changed(with_software(cluster(4), "node01", driver=gone)) == [
        ("driver", "570.86.15", "not known", ("node01",))
    ]
    assert changed(without(cluster(4), "node01", "software")) == []


def test_other_advice_is_told() -> None:
    assert changed(advice=ADVICE) == [
        ("advised NCCL_SOCKET_IFNAME", "nothing", "=eth0", ()),
        ("advised NCCL_IB_HCA", "nothing", "unset it", ()),
    ]
