"""`deepspeed`: the hostfile, who starts the nodes, and its filters."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.deepspeed_line import DEFAULT_HOSTFILE, parse_hostfile, read_deepspeed
from ncclcheck.launch.line.launch_line import LaunchLine
from ncclcheck.model.errors import UsageError

HOSTS = "# pool\na slots=8\n\nb slots=8\nc  slots=4\n"


def line(*words: str, hostfile: str | None = HOSTS) -> LaunchLine:
    files = {} if hostfile is None else {DEFAULT_HOSTFILE: hostfile, "pool": hostfile}
    read = read_deepspeed([*words, "train.py", "--deepspeed"], {}, files.get)
    assert read is not None
    assert read.launch is not None
    return read.launch


def test_it_starts_the_nodes_of_the_hostfile_itself() -> None:
    told = line("-H", "pool")
    assert (told.nnodes, told.remote_hosts, told.node_rank, told.nproc_per_node) == (
        3,
        ("a", "b", "c"),
        None,
        None,
    )


def test_without_a_hostfile_it_is_this_node() -> None:
    assert line("--num_gpus=2", hostfile=None) == LaunchLine("deepspeed", nproc_per_node=2)


def test_without_ssh_each_node_starts_its_own() -> None:
    told = line("--no_ssh", "--node_rank=1", "--num_nodes=2", "--master_addr", "10.0.0.1", "--master_port=7")
    assert (told.nnodes, told.node_rank, told.master_addr, told.master_port) == (2, 1, "10.0.0.1", 7)
    assert (told.remote_hosts, told.nproc_per_node) == ((), 8)


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (["--include", "b@c:0,2"], ("b", "c")),
        (["--exclude", "b"], ("a", "c")),
        (["--exclude", "a:0,1"], ("a", "b", "c")),
        (["--num_nodes", "2"], ("a", "b")),
        (["--exclude", "b:0,1,2,3@b:4,5,6,7"], ("a", "c")),
    ],
)
def test_filters(words: list[str], hosts: tuple[str, ...]) -> None:
    assert line(*words).remote_hosts == hosts


@pytest.mark.parametrize(
    ("words", "hostfile", "sentence"),
    [
        (["--num_nodes=2"], None, "which names the nodes, is not there"),
        (["--include", "x"], HOSTS, "'x' of 'x' is not in the hostfile"),
        (["--include", "c:4"], HOSTS, "there is no slot '4' on c, which has 4"),
        (["--exclude", "a@b@c"], HOSTS, "leave no host"),
        (["--no_ssh"], HOSTS, "needs --node_rank 0 to 2"),
        ([], "a 8\n", "line 1"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], hostfile: str | None, sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        line(*words, hostfile=hostfile)
    assert sentence in str(told.value)


def test_a_hostfile_is_strict() -> None:
    assert parse_hostfile(HOSTS, "h") == {"a": 8, "b": 8, "c": 4}
    for text in ("a slots=1\na slots=2\n", "# nothing\n"):
        with pytest.raises(UsageError, match="h"):
            parse_hostfile(text, "h")
