"""Slurm's topology files: what is behind which switch, and the line of what is wrong."""

from __future__ import annotations

import pytest

from ncclcheck.measure.matrix.topology_file import parse_topology
from ncclcheck.model.errors import UsageError

TREE = """\
# comment
- topology: fast
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-04]
- topology: usual
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "s[1-2]"}
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node03,node04
"""
CONF = """\
# comment
SwitchName=spine Switches=s[1-2] LinkSpeed=4
switchname=s1 nodes=node[01-02] # the first
SwitchName=s2 \\
  Nodes=node03,node04
"""


def switches(text: str) -> dict[str, tuple[str, ...]]:
    return {switch.name: switch.hosts for switch in parse_topology(text, "FILE").switches}


@pytest.mark.parametrize("text", [TREE, CONF])
def test_the_nodes_behind_the_lowest_switches_are_read(text: str) -> None:
    assert switches(text) == {"s1": ("node01", "node02"), "s2": ("node03", "node04")}


def test_blocks_count_as_switches_and_the_first_topology_where_none_is_the_default() -> None:
    assert switches(TREE.replace("true", "false")) == {"b1": ("node01", "node02", "node03", "node04")}
    assert switches("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2,4\n") == {"b1": ("n1", "n2")}


def test_a_flat_topology_has_no_switches() -> None:
    assert switches("- topology: t\n  flat: true\n") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- topology: t\n  tree: [1\n", "line 3: not YAML"),
        ("- topology: t\n  tree:\n    switches:\n      - nodes: n1\n", "line 4: expected switch:"),
        ("- topology: t\n  tree:\n    switches:\n      - {switch: s, nodes: [n1]}\n", "line 4: expected a word"),
        ("- topology: t\n  tree:\n    leaves: 3\n", "line 3: expected switches:"),
        ("- topology: t\n", "line 1: a topology has one of block, flat, ring, torus3d, tree"),
        ("a: 1\n", "line 1: expected a list of topologies"),
        ("", "line 1: expected a list of topologies"),
        ("[]", "line 1: there is no topology"),
        ("- a\n---\n- b\n", "line 2: not YAML"),
        ("[" * 100_000, "line 1: nested too deeply"),
        ("\0", "line 1: not YAML"),
        ("SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n[1-2]\n", "line 2: n1 is behind s1 and s2"),
        ("SwitchName=s1 Nodes=n[1-\n", r"line 1: 'n\[1-' is no list of nodes"),
        ("SwitchName=s1 Nodes=n[1-9999999]\n", "line 1: .* is no list of nodes"),
        ("SwitchName=s1 Nodes=n1\n\nInclude other.conf\n", "line 3: expected words like"),
        ("SwitchName=s1 Nodes=n1\nLinkSpeed=4\n", "line 2: neither SwitchName nor BlockName"),
        (
            "SwitchName=s1 Nodes=n[1-40000]\nSwitchName=s2 Nodes=m[1-40000]\n",
            "line 2: more than 65536 nodes",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"FILE: {said}"):
        parse_topology(text, "FILE")
