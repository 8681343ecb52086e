"""Which rules of a policy are in force, and what is required because it is demanded."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.checks.rules import in_force, rule_text
from ncclcheck.model.policy.expected import PolicyRule
from tests.builders import with_environment
from tests.hardware_builders import rdma_cluster
from tests.image_builders import healthy_image
from tests.policies import with_policy

RULES = """
require = ["gpu-count"]
ignore = [{check = "env-differs", reason = "ticket 7", until = 2026-12-31}]
demote = [{check = "NC604", reason = "known", until = 2026-01-31}]
"""


def test_a_rule_counts_until_its_day_is_over() -> None:
    now = in_force(Selection(ignore=("NC1",)), with_policy(rdma_cluster(2), RULES, "2026-01-31"))
    assert (now.require, now.ignore, now.demote) == (("gpu-count",), ("NC1", "env-differs"), ("NC604",))
    later = in_force(Selection(), with_policy(rdma_cluster(2), RULES, "2027-01-01"))
    assert (later.require, later.ignore, later.demote) == (("gpu-count",), (), ())


def test_the_report_tells_why_a_check_is_ignored_or_demoted() -> None:
    snapshot = with_environment(
        with_policy(rdma_cluster(2), RULES, "2026-01-01"), "node01", NCCL_IB_DISABLE="1"
    )
    runs = {run.slug: run for run in run_checks(snapshot, in_force(Selection(), snapshot))}
    reason = "ignored by site.toml, line 3 until 2026-12-31: ticket 7"
    assert (runs["env-differs"].outcome, runs["env-differs"].reason) == ("ignored", reason)
    harmful = runs["env-harmful"]
    if any(finding.severity == "warning" for finding in harmful.findings):
        assert not any(finding.severity == "error" for finding in harmful.findings)
    assert rule_text(PolicyRule("demote", "NC604", "a.toml")) == "demoted to a warning by a.toml"
    assert rule_text(PolicyRule("require", "NC604", "a.toml", "why")) == "required by a.toml: why"


def test_an_error_that_is_demoted_says_by_whom() -> None:
    text = 'demote = [{check = "software-unexpected", reason = "rolling out", until = 2099-01-01}]\n'
    snapshot = with_policy(rdma_cluster(2), text + '[versions]\ntorch = "2.8.0"\n')
    runs = {run.slug: run for run in run_checks(snapshot, in_force(Selection(), snapshot))}
    run = runs["software-unexpected"]
    assert [finding.severity for finding in run.findings] == ["warning"]
    assert run.reason == "demoted to a warning by site.toml, line 1 until 2099-01-01: rolling out"


def test_what_is_demanded_must_be_judged_unless_it_is_ignored_or_not_selected() -> None:
    snapshot = with_policy(rdma_cluster(2), '[versions]\ntorch = "2.9.0"\ndriver = "570.86.15"\n')
    assert in_force(Selection(), snapshot).require == ("software-unexpected", "node-unexpected")
    assert in_force(Selection(ignore=("NC5",)), snapshot).require == ("node-unexpected",)
    assert in_force(Selection(select=("NC5",)), snapshot).require == ("software-unexpected",)


def test_an_image_is_not_required_to_have_what_a_node_has() -> None:
    snapshot = with_policy(healthy_image(), '[versions]\ntorch = "2.9.0"\ndriver = "570.86.15"\n')
    assert in_force(Selection(), snapshot).require == ("software-unexpected",)
    assert in_force(Selection(), replace(snapshot, of="nodes")).require == (
        "software-unexpected",
        "node-unexpected",
    )
