"""The sections of a report in Markdown."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.report.markdown.markdown import to_markdown
from ncclcheck.report.markdown.markdown_sections import (
    as_block,
    bench_markdown,
    findings_markdown,
    fleet_markdown,
    log_markdown,
    settings_markdown,
)
from ncclcheck.report.text.isolation_text import isolation_lines
from tests.isolation_builders import SLOW, isolate_report
from tests.matrix_builders import matrix_report, two_leaves
from tests.report.reports import ADVICE, report
from tests.report.whole_report import LOG, whole_report
from tests.soak_builders import healthy_lines, soak_report


def test_what_the_terminal_shows_of_isolate_matrix_and_soak_is_a_code_block() -> None:
    isolated = to_markdown(isolate_report(nodes=(SLOW,)))
    assert "\n## Pairs of nodes\n\n```text\npairs: 2 of 6 were tested in 1 round" in isolated
    assert "\n  srun --exclude=node03\n" in isolated
    matrix = to_markdown(matrix_report(two_leaves()))
    assert "\n## Matrix of the nodes\n\n```text\nmatrix: " in matrix
    assert "\n## Soak\n\n```text\nsoak: 40 blocks" in to_markdown(soak_report(healthy_lines()))


def test_the_settings_that_were_tried_are_in_it() -> None:
    text = to_markdown(whole_report())
    tried = text.partition("\n## Settings that were tried\n\n```text\n")[2].partition("```")[0]
    assert "GLOO_SOCKET_IFNAME=fast: advised: faster at all_reduce 1M" in tried


def test_what_a_report_does_not_have_is_empty() -> None:
    made = replace(report(), findings=(), bench=None)
    for section in (
        as_block(isolation_lines), bench_markdown, findings_markdown, fleet_markdown, log_markdown, settings_markdown
    ):  # fmt: skip
        assert "".join(section(made)) == ""


def test_settings_are_lines_for_a_shell_and_logs_have_a_table() -> None:
    settings = "".join(settings_markdown(replace(report(), advice=ADVICE)))
    assert settings.startswith("```sh\n# ")
    assert "export NCCL_SOCKET_IFNAME='=eth0'" in settings
    log = "".join(log_markdown(replace(report(), log=LOG)))
    assert log.startswith("1 file: `job.log`\n\n| really used | value | hosts |")
