"""The HTML page: one file, nothing loaded, everything in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re

import pytest
from msgspec.structs import replace

from ncclcheck.model.codec import decode
from ncclcheck.model.report import Report
from ncclcheck.report.html import html
from ncclcheck.report.html.html import script_json, to_html
from ncclcheck.run.judge import judge
from ncclcheck.run.options import RunOptions
from tests.large_runs import large_run
from tests.report.reports import ADVICE, finding, found, mtu_finding, report
from tests.report.samples import full_report


def test_a_page_without_measurements_needs_no_charts() -> None:
    made = replace(report([found(mtu_finding())], advice=ADVICE), probes=())
    page = to_html(made)
    assert len(page) < 200_000
    assert "plotly" not in page.lower().replace("typeof plotly", "").replace("plotly.", "")
    assert "unset NCCL_IB_HCA" in page
    assert "ip link set dev eth0 mtu 9000" in page


def test_the_policy_allows_these_scripts_and_no_connection() -> None:
    page = to_html(full_report(8))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = policy[1].replace("&#39;", "'")
    assert allowed.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in allowed
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{hashed}'" in allowed
    assert not re.search(r"<(?:link|img|iframe|script)[^>]*(?:src|href)=\"http", page)


def test_a_large_report_is_in_the_page_too() -> None:
    made = full_report(100)
    packed = re.search(r'type="application/gzip\+base64" id="report-json">([^<]*)<', to_html(made))
    assert packed is not None
    assert decode(gzip.decompress(base64.b64decode(packed[1])), Report) == made


def test_of_thousands_of_nodes_the_page_has_no_facts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_DRAWN", 100)  # as if these were thousands: making them takes time
    made = judge(large_run(512, "broken"), RunOptions(command="preflight"))
    page = to_html(made)
    assert len(page) < 5_000_000 / 4
    assert "without the facts of its 512 nodes" in page
    packed = re.search(r'id="report-json">([^<]*)<', page)
    assert packed is not None
    held = decode(packed[1], Report)
    assert len(held.nodes) == 512
    assert not any(node.facts for node in held.nodes)
    assert held.findings == made.findings


def test_nothing_in_the_data_ends_its_script() -> None:
    assert (
        script_json({"a": "</script><!--\u2028&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u2028\\u0026"}'
    )
    made = report([found(finding("mtu-differs", "</script><script>alert(1)</script>"))])
    page = to_html(made)
    assert "<script>alert" not in page
    assert page.count("</script>") == page.count("<script")


def test_what_could_not_be_told_is_in_words_not_only_in_colours() -> None:
    page = to_html(full_report(8))
    assert "The result of these checks is unknown, so they did not pass." in page
    assert re.search(r"</svg>silent</td>", page)
    assert re.search(r"</svg>error</span>", page)
