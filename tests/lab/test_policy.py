"""A policy judged over several real nodes, with a profile for some of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]

POLICY = """nodes = 3
ignore = [{check = "env-differs", reason = "one rank is traced", until = 2099-12-31}]
[network]
interface = "eth0"
mtu = 1500
[environment]
NCCL_DEBUG = "WARN"
[profile.jumbo]
hosts = "node3"
[profile.jumbo.network]
mtu = 9000
"""


def test_every_node_is_held_to_the_policy_and_the_one_that_misses_it_is_named(
    lab: LabOf, tmp_path: Path
) -> None:
    three = lab(3)
    policy = tmp_path / "site.toml"
    policy.write_text(POLICY)
    by_node = {node: {"NCCL_DEBUG": "INFO" if node.name == "node2" else "WARN"} for node in three.nodes}
    outcomes = run(three, "preflight", "--expect", str(policy), env_by_node=by_node)
    assert [outcome.code for outcome in outcomes.values()] == [1] * 3, str(outcomes["node1"].finished)
    first = outcomes["node1"]
    variable = first.finding("env-unexpected")
    assert (variable["hosts"], variable["evidence"][0]["observed"]) == (["node2"], "INFO")
    assert variable["evidence"][0]["source"].endswith(f"{policy}, line 7")
    mtu = first.finding("node-unexpected")
    assert (mtu["hosts"], mtu["evidence"][0]["expected"]) == (["node3"], "9000")
    assert mtu["evidence"][0]["source"].endswith(f"{policy}, line 11")
    assert first.outcome("env-differs") == "ignored"
