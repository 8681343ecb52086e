"""`python -m deepspeed.launcher.launch`: hosts and GPUs from its world info, and this node's place among them."""

from __future__ import annotations

import base64

import pytest

from ncclcheck.launch.line.deepspeed_node_line import read_deepspeed_node
from ncclcheck.launch.line.launch_line import LaunchLine, Script
from ncclcheck.model.errors import UsageError

WORLD = "--world_info=" + base64.urlsafe_b64encode(b'{"a": [0, 1], "b": [0, 1, 2]}').decode()


def test_nodes_rank_and_processes() -> None:
    found = read_deepspeed_node(
        [WORLD, "--node_rank=1", "--master_addr=a", "--module", "pkg.train", "-x"], "ds"
    )
    assert found is not None
    assert found.launch == LaunchLine(
        "ds", nnodes=2, node_rank=1, master_addr="a", master_port=29500, nproc_per_node=3
    )
    assert found.script == Script("pkg.train", is_module=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train.py"], "expected the base64 form"),
        (["--world_info=e30=", "train.py"], "names no host"),
        (["--world_info=W10=", "train.py"], "expected the base64 form"),
        (["--world_info=%%%", "train.py"], "expected the base64 form"),
        ([WORLD, "--node_rank=2", "train.py"], "has 2 hosts"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_deepspeed_node(words, "ds")


def test_help_starts_nothing() -> None:
    assert read_deepspeed_node(["--help"], "ds") is None
