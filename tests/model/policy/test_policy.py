"""The policy file: read strictly, and every mistake named with its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ncclcheck.model.bench_demands import Floor
from ncclcheck.model.errors import UsageError
from ncclcheck.model.policy.expected import (
    Expectation,
    Number,
    PolicyRule,
    Presence,
    Profile,
    Text,
    VersionRange,
)
from ncclcheck.model.policy.policy import Policy, parse_policy
from ncclcheck.model.policy.policy_values import SECTIONS

SITE = """nodes = 4
gpus_per_node = 8
rdma_ports_per_node = 8
fail_on = "warning"
select = ["NC2", "NC5"]
require = ["gpu-count"]
ignore = [
  "NC6",
  {check = "pcie-acs", reason = "known board", until = 2026-12-31},
]
[versions]
torch = ">=2.7,<3"
[environment]
NCCL_DEBUG = ["WARN", "INFO"]
NCCL_P2P_DISABLE = false
[floors]
any = 5
"all_reduce@1G" = 300
[profile.h100]
hosts = ["node*", "gpu1"]
[profile.h100.versions]
torch = "2.9.0"
[profile.small]
nodes = 2
gpus_per_node = 4
ignore = ["NC3"]
[profile.small.floors]
any = 1
"""


def test_a_policy_is_read_as_written_with_the_line_of_every_demand() -> None:
    policy = parse_policy(SITE, "site.toml")
    assert (policy.nodes, policy.gpus_per_node, policy.fail_on) == (4, 8, "warning")
    assert policy.select == ("NC2", "NC5")
    assert policy.floors == (Floor(5.0), Floor(300.0, "all_reduce", 1 << 30))
    assert policy.expected.rules == (
        PolicyRule("require", "gpu-count", "site.toml, line 6"),
        PolicyRule("ignore", "NC6", "site.toml, line 8"),
        PolicyRule("ignore", "pcie-acs", "site.toml, line 9", "known board", "2026-12-31"),
    )
    assert policy.expected.expectations == (
        Expectation("rdma_ports_per_node", Number(8), "site.toml, line 3"),
        Expectation("versions.torch", VersionRange(">=2.7,<3"), "site.toml, line 12"),
        Expectation("environment.NCCL_DEBUG", Text(("WARN", "INFO")), "site.toml, line 14"),
        Expectation("environment.NCCL_P2P_DISABLE", Presence(False), "site.toml, line 15"),
        Expectation("versions.torch", VersionRange("2.9.0"), "site.toml, line 22", "h100"),
    )
    assert policy.expected.profiles == (Profile("h100", ("node*", "gpu1"), (), "site.toml, line 19"),)


def test_an_empty_policy_demands_nothing() -> None:
    assert parse_policy("", "site.toml") == Policy()


def test_a_chosen_profile_is_laid_over_the_policy_for_all_nodes() -> None:
    policy = parse_policy(SITE, "site.toml", "small")
    assert (policy.nodes, policy.gpus_per_node, policy.floors[0]) == (2, 4, Floor(1.0))
    assert policy.expected.profiles == ()
    assert [rule.check for rule in policy.expected.rules] == ["gpu-count", "NC6", "pcie-acs", "NC3"]
    chosen = parse_policy(SITE, "site.toml", "h100").expected.expectations
    torch = [expectation for expectation in chosen if expectation.key == "versions.torch"]
    assert torch == [
        Expectation("versions.torch", VersionRange("2.9.0"), "site.toml, line 22")
    ]  # of every node


def test_counts_that_differ_between_nodes_are_judged_for_each() -> None:
    text = 'gpus_per_node = 8\n[profile.a]\nhosts = "a*"\ngpus_per_node = 4\n'
    policy = parse_policy(text, "site.toml")
    assert policy.gpus_per_node is None
    assert [(expectation.wanted, expectation.profile) for expectation in policy.expected.expectations] == [
        (Number(8), ""),
        (Number(4), "a"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes = 4\ngpus = = 8", "not valid TOML.*line 2"),
        ("nodes = 4\n\nnodes = 5", "not valid TOML: .*line 3"),
        (
            "nodes = 4\ngpus-per-node = 8",
            r"unknown key 'gpus-per-node' \(line 2\): did you mean 'gpus_per_node'\?",
        ),
        ("colour = 'red'", r"unknown key 'colour' \(line 1\): known are nodes, gpus_per_node"),
        ("nodes = 'four'", r"nodes = 'four' \(line 1\): expected a whole number, like 4"),
        ("nodes = true", r"nodes = true \(line 1\): expected a whole number"),
        ("nodes = 0", r"nodes = 0 \(line 1\) is impossible: expected 1 to 65536"),
        ("nodes = 70000", r"nodes = 70000 \(line 1\) is impossible: expected 1 to 65536"),
        ("gpus_per_node = 99999999999999999999999", "is impossible: expected 0 to 4096"),
        ("nodes = " + "9" * 100_000, "not valid TOML: a number or date in it is impossible"),
        ("until = 2026-13-40", "not valid TOML"),
        ("fail_on = 'errors'", 'expected "error", "warning" or "never"'),
        ("require = 'gpu-count'", r"require = 'gpu-count' \(line 1\): expected a list of checks"),
        ("require = [\n'a',\n3]", r"require\[1\] = 3 \(line 3\): expected the name of a check"),
        ("ignore = [\n{check = 'a', reason = 'b'}]", r"ignore\[0\] = .*\(line 2\): until is missing"),
        ("ignore = [{check = 'a', until = 2026-01-01}]", "reason is missing"),
        ("demote = [{check = 'a', reason = ' ', until = 2026-01-01}]", r"demote\[0\].reason = ' '.*a text"),
        ("ignore = [{check = 'a', reason = 'b', until = '2026-01-01'}]", "expected a date without quotes"),
        ("ignore = [{check = 'a', reason = 'b', untill = 1}]", r"unknown key 'ignore\[0\].untill'.*'until'"),
        ("[versions]\n\ntorhc = '1'", r"unknown key 'versions.torhc' \(line 3\): did you mean 'torch'\?"),
        ("versions = 3", r"versions = 3 \(line 1\): expected a table, like \[versions\]"),
        ("[environment]\n'NOT A NAME' = true", r'environment."NOT A NAME" = true \(line 2\)'),
        ("[floors]\nall_reduse = 3", r"floors.all_reduse = 3 \(line 2\): .*name it any, all_reduce"),
        ("[floors]\nall_reduce = -3", r"floors.all_reduce = -3 \(line 2\): .*out of range"),
        ("[floors]\n'all_reduce@1Q' = 3", "is no size"),
        ("[floors]\nany = 'fast'", "expected GB/s of bus bandwidth"),
        ("floors = 3", r"expected a table, like \[floors\]"),
        ("[profile.a]\nhosts = 'x'\nnodes = 3", r"profile.a.nodes = 3 \(line 3\): of the whole run"),
        ("[profile.a]\nhosts = 3", r"profile.a.hosts = 3 \(line 2\): expected a host, like"),
        ("[profile.a]\nprofile = 3", r"unknown key 'profile.a.profile' \(line 2\)"),
        (
            "[profile.a]\nhosts = 'node[01-16]'",
            r"hosts = .*\(line 2\): expected a shell pattern.*set of hosts",
        ),
        ("[floors]\n'@1G' = 3\n'@1024M' = 5", r"@1024M. = 5 \(line 3\): said twice"),
        ("[profile]\na = 3", "expected tables, like"),
        ("a = " + "[" * 100_000, "nested too deeply|not valid TOML"),
        ("#" + "x" * (1 << 20), "more than 1 MiB"),
        ("a" + ".a" * 200_000 + " = 1", "a key of more than 100 parts .at line 1."),
        ("nodes = 2\n[" + '"a".' * 200_000 + "a]", "a key of more than 100 parts .at line 2."),
    ],
)
def test_a_mistake_is_named_with_file_and_place(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_policy(text, "site.toml")
    assert str(caught.value).startswith("--expect site.toml: ")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("h10", "--profile 'h10': site.toml has no such profile: did you mean 'h100'?"),
        ("x", "--profile 'x': site.toml has no such profile: known are h100, small"),
    ],
)
def test_a_profile_that_is_not_there_is_named_with_those_that_are(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_policy(SITE, "site.toml", name)
    assert str(caught.value) == sentence


def test_the_examples_of_the_documentation_are_policies() -> None:
    page = (Path(__file__).parents[3] / "docs/policy.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    policy = parse_policy("".join(examples), "site.toml")
    keys = {
        expectation.key
        for expectation in policy.expected.expectations
        if not expectation.key.startswith("environment.")
    }
    everything = {f"{section}.{key}" for section, kinds in SECTIONS.items() for key in kinds}
    assert keys >= everything
    assert [profile.name for profile in policy.expected.profiles] == ["h200"]


def test_options_of_what_is_measured_are_read_strictly_and_a_profile_says_some_instead() -> None:
    text = """[soak]
duration = "2h"
drop = "8%"
[isolate]
slower_than = "20%"
size = "16M"
[matrix]
size = "1M"
[try]
gain = 5
[profile.long.soak]
duration = "12h"
"""
    assert parse_policy(text, "p.toml").options == {
        "soak.duration": "2h",
        "soak.drop": "8%",
        "isolate.slower_than": "20%",
        "isolate.size": "16M",
        "matrix.size": "1M",
        "try.gain": "5",
    }
    assert parse_policy(text, "p.toml", "long").options["soak.duration"] == "12h"
    assert parse_policy(text, "p.toml", "long").options["soak.drop"] == "8%"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[soak]\nduration = 7200", r"soak.duration = 7200 \(line 2\): expected a time"),
        ('[soak]\nduration = "9d"', "expected a time from"),
        ('[soak]\ndrop = "1%"', "expected per cent from 2 to 90"),
        ("[soak]\ndrops = 5", "did you mean 'drop'"),
        ("[try]\ngain = true", "expected per cent"),
        ('[isolate]\nslower_than = "2%"', "expected per cent from 3 to 90"),
        ("[isolate]\nscreen = 2", "slower_than"),
        ('[isolate]\nsize = "32K"', r"isolate.size = '32K' \(line 2\): expected a size from 64K to 4G"),
        ("[matrix]\nsize = 65536", "expected a size from 64K to 4G"),
        ('[matrix]\nsize = "1M-16M"', "expected a size from 64K to 4G"),
        ('[profile.a]\nhosts = "n*"\n[profile.a.isolate]\nsize = "1M"', "of the whole run"),
        ("soak = 5", "expected a table"),
        ('[profile.a]\nhosts = "n*"\n[profile.a.soak]\ndrop = 5', "of the whole run"),
    ],
)
def test_a_wrong_option_of_what_is_measured_is_named(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_policy(text, "p.toml")
