"""The settings block, to be read and pasted."""

from __future__ import annotations

from ncclcheck.model.report import Advice, Setting
from ncclcheck.report.text.page import draw
from ncclcheck.report.text.settings_text import settings_lines
from tests.report.reports import ADVICE, report


def test_each_setting_comes_with_its_reason_and_proof() -> None:
    lines = draw(settings_lines(report(advice=ADVICE)), width=40, color=False).splitlines()
    assert lines == [
        "Settings to use",
        "  # all nodes reach each other there (proven by asking NCCL: 4 of 4 bound eth0)",
        "  export NCCL_SOCKET_IFNAME='=eth0'",
        "  # it names nothing there (by rule, not tried here), on node02 only",
        "  unset NCCL_IB_HCA",
        "note: no effect was measured",
    ]


def test_settings_that_belong_together_share_their_reason() -> None:
    threads, sockets = (
        Setting(name, "4", (), "one thread is slow", "rule", "the guide")
        for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    )
    lines = draw(
        settings_lines(report(advice=Advice((threads, sockets)))), width=80, color=False
    ).splitlines()
    assert lines[1:] == [
        "  # one thread is slow (by rule, not tried here: the guide)",
        "  export NCCL_SOCKET_NTHREADS='4'",
        "  export NCCL_NSOCKS_PERTHREAD='4'",
    ]


def test_no_advice_is_no_section() -> None:
    assert list(settings_lines(report())) == []
