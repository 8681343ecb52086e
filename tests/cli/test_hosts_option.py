"""--hosts and the options that go with it on the command line: what is taken, what contradicts, what is handed on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.hosts_option import head_request, passed_on
from ncclcheck.model.errors import UsageError

JOB = {
    "NCCL_SOCKET_IFNAME": "eth0",
    "MASTER_PORT": "29501",
    "HOME": "/root",
    "TORCH_API_TOKEN": "abc",
    "PATH": "/bin",
}


def test_nothing_asked_is_nothing_done() -> None:
    assert head_request({}, {}) is None


def test_what_is_asked_is_complete() -> None:
    request = head_request({"hosts": "root@node[1-2]", "ssh": "ssh -F 'my file'"}, JOB)
    assert request is not None
    assert request.hosts == ("node1", "node2")
    assert request.targets == ("root@node1", "root@node2")
    assert request.ssh == ("ssh", "-F", "my file")
    assert request.python == sys.executable
    assert request.folder == str(Path.cwd())
    assert request.environment == {"NCCL_SOCKET_IFNAME": "eth0", "MASTER_PORT": "29501"}


def test_a_host_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("node1 slots=8\nnode2 slots=4\n")
    request = head_request({"hostfile": str(file), "remote_python": "/opt/python"}, {})
    assert request is not None
    assert (request.hosts, request.slots, request.python) == (("node1", "node2"), (8, 4), "/opt/python")


def test_the_nodes_of_an_allocation() -> None:
    request = head_request({"hosts": "slurm"}, {"SLURM_JOB_NODELIST": "gpu[07-08]"})
    assert request is not None
    assert request.hosts == ("gpu07", "gpu08")
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST is not set"):
        head_request({"hosts": "slurm"}, {})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hosts": "a", "hostfile": "b"}, "--hostfile and --hosts"),
        ({"hosts": "a", "meet_in": "/b"}, "--meet-in and --hosts"),
        ({"hosts": "a", "from_": "b"}, "--from and --hosts"),
        ({"hosts": "a", "node_rank": 0}, "--node-rank and --hosts"),
        ({"hosts": "a", "nnodes": 2}, "--nnodes and --hosts"),
        ({"ssh": "ssh"}, "--ssh is for"),
        ({"env": ("A",)}, "--env is for"),
        ({"remote_python": "p"}, "--remote-python is for"),
        ({"hosts": "a", "ssh": "ssh 'x"}, "--ssh"),
        ({"hosts": "a", "ssh": ""}, "--ssh"),
        ({"hostfile": "/no/such/file"}, "--hostfile"),
        ({"hosts": ""}, "--hosts"),
    ],
)
def test_contradictions_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        head_request(given, {})


def test_more_is_handed_on_where_it_is_asked_for() -> None:
    assert passed_on({**JOB, "MY_FLAG": "1"}, ("MY_FLAG", "OTHER=a=b", "NCCL_DEBUG=INFO")) == {
        "NCCL_SOCKET_IFNAME": "eth0",
        "MASTER_PORT": "29501",
        "MY_FLAG": "1",
        "OTHER": "a=b",
        "NCCL_DEBUG": "INFO",
    }


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("NOT_SET", "not set here"),
        ("1X=2", "expected NAME"),
        ("A B=2", "expected NAME"),
        ("WANDB_API_KEY=x", "looks like a secret"),
        ("X=hf_0123456789abcdefghij", "looks like a secret"),
        ("X=a\nb", "line break"),
    ],
)
def test_what_cannot_be_handed_on_is_refused(asked: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        passed_on({}, (asked,))
