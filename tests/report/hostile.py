"""Random reports with what other machines may call themselves, judged by the real exit code."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.model.finding import CheckRun, Evidence, Finding, Fix, Outcome, Severity
from ncclcheck.model.report import Advice, Report, Setting
from tests.builders import cluster
from tests.report.reports import report

NASTY = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "-->", "]]>", "&amp;", "&#60;", "<b>",
    "a|b", "`", "``x", "*bold*", "_x_", "[a](http://x.example)", "@somebody", "#1", "1. one", "- - -", "$x$", "\\",
    "\\|", "\x1b[31m", "\x00", "\x07", "\r\n::error::x", "::set-output name=a::b", "##[add-mask]x", "%0A", "%",
    "\u202e", "\u2028", "\n", "\t", "{{ x }}", "{% x %}", "'", '"', "é", "日本", "🙂", "", " ", "node01",
    "www.x.example", "javascript:alert(1)",
)  # fmt: skip
NO_HOST_WORDS = (
    "$(reboot)", "`reboot`", "x y", "x\ty", "x\ny", "x'y", 'x"y', "x\\y", "--all", "-l", "a=b", "ALL", "All",
    "node[001-999]", "a,b", "*", "@all", "^x", "!x", "~root", "#x", "x&", "x|y", "x>y", "<x", "{a,b}", "%h", "", " ",
    "\u202enode", "no\u200bde", "é", "\x1b[2Jx", "x\x00", "x\n", "fe80::1%eth0", "x" * 254,
    "x;rm -rf /", "?",
)  # fmt: skip
_LETTERS = st.characters(codec="utf-8", exclude_characters="\ufffe\uffff")
TEXT = st.lists(st.sampled_from(NASTY) | st.text(_LETTERS, max_size=12), min_size=1, max_size=4).map(" ".join)
HOSTS = st.lists(
    st.sampled_from(("node01", "node02", "node[3]", "n,4", "n@5", "^x", "a|b", "<b>")) | TEXT, max_size=3
)
# Real checks, since --require refuses others.
CHECKS = (("NC101", "node-silent"), ("NC213", "mtu-differs"), ("NC701", "shm-small"), ("NC401", "gpu-count"))
SEVERITY: st.SearchStrategy[Severity] = st.sampled_from(("error", "warning", "info"))
_QUIET: st.SearchStrategy[Outcome] = st.sampled_from(
    ("passed", "unknown", "not_applicable", "ignored", "crashed")
)

_evidence = st.builds(Evidence, HOSTS.map(tuple), TEXT, TEXT, TEXT, TEXT)
_fix = st.builds(
    Fix, TEXT, st.lists(TEXT, max_size=2).map(tuple), st.dictionaries(TEXT, TEXT, max_size=2), TEXT
)
_finding = st.builds(
    Finding,
    SEVERITY,
    TEXT,
    HOSTS.map(tuple),
    st.lists(_evidence, max_size=2).map(tuple),
    st.lists(_fix, max_size=2).map(tuple),
)


@st.composite
def _runs(draw: st.DrawFn) -> list[CheckRun]:
    runs = []
    for code, slug in draw(st.lists(st.sampled_from(CHECKS), unique=True)):
        found = [replace(finding, code=code, slug=slug) for finding in draw(st.lists(_finding, max_size=3))]
        outcome: Outcome = "found" if found else draw(_QUIET)
        reason = draw(TEXT) if outcome != "passed" else ""
        runs.append(CheckRun(code, slug, draw(TEXT), outcome, reason, 0.01, tuple(found)))
    return runs


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """A report as the builder makes it, of nodes and findings with hostile names."""
    advice = Advice(
        draw(
            st.lists(
                st.builds(
                    Setting,
                    TEXT,
                    st.none() | TEXT,
                    HOSTS.map(tuple),
                    TEXT,
                    st.sampled_from(("measured", "asked", "rule")),
                    TEXT,
                ),
                max_size=2,
            ).map(tuple)
        ),
        draw(st.lists(TEXT, max_size=2).map(tuple)),
    )
    made = report(
        draw(_runs()),
        cluster(2),
        advice=advice,
        fail_on=draw(st.sampled_from(("error", "warning", "never"))),
        require=[code for code, _ in draw(st.lists(st.sampled_from(CHECKS), unique=True, max_size=2))],
        interrupted=draw(st.booleans()),
    )
    hosts = draw(st.lists(TEXT, min_size=2, max_size=2, unique=True))
    nodes = tuple(replace(node, host=host) for node, host in zip(made.nodes, hosts, strict=True))
    nccl = tuple(
        replace(entry, host=host, reason=draw(TEXT)) for entry, host in zip(made.nccl, hosts, strict=True)
    )
    probes = made.probes if draw(st.booleans()) else ()
    return replace(made, nodes=nodes, nccl=nccl, probes=probes, created=draw(TEXT))
