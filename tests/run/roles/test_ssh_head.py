"""What the head node tells its hosts, and what it makes of those that it did not reach."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.registry import Selection
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.codec import decode
from ncclcheck.model.snapshot import Unreached
from ncclcheck.run.context import Context
from ncclcheck.run.options import HeadRequest, RunOptions
from ncclcheck.run.roles.ssh_head import RemoteTask, head_launch, task_of, with_unreached
from tests.builders import cluster, with_silent

REQUEST = HeadRequest(
    ("node01", "node02"), ("root@node01", "node02"), (8, None), ("ssh",), "/opt/python", {"A": "1"}, "/work"
)


NO_FLAGS = LaunchFlags()


def context(flags: LaunchFlags = NO_FLAGS) -> Context:
    options = RunOptions(
        "bench", flags, code_paths=("train.py",), selection=Selection(ignore=("NC1",)), head=REQUEST
    )
    return Context(options, {}, head_launch(flags, REQUEST), "login", Deadline(30), lambda _: None)


def test_the_master_is_the_first_host_unless_it_was_named() -> None:
    launch = head_launch(NO_FLAGS, REQUEST)
    assert (launch.nnodes, launch.world_size, launch.master_addr, launch.master_port) == (
        2,
        2,
        "node01",
        29500,
    )
    assert launch.hosts == ("node01", "node02")
    named = head_launch(LaunchFlags(master_addr="10.0.0.1", master_port=5), REQUEST)
    assert (named.master_addr, named.master_port) == ("10.0.0.1", 5)
    exported = replace(REQUEST, environment={"MASTER_ADDR": "ib-node01", "MASTER_PORT": "7"})
    assert head_launch(NO_FLAGS, exported).master_addr == "ib-node01"
    assert head_launch(NO_FLAGS, exported).master_port == 7


def test_a_host_is_told_its_place_and_nothing_that_is_judged_here() -> None:
    task = decode(task_of(context(), REQUEST, 1), RemoteTask)
    assert task.folder == "/work"
    assert task.options.flags == LaunchFlags(2, 1, "node01", 29500, None)
    assert task.options.code_paths == ("train.py",)
    assert task.options.selection == Selection()
    assert task.options.head is None
    assert not task.options.wants_documents
    assert 1.0 <= task.options.timeout_s <= 30.0


def test_ranks_per_node_are_those_of_the_command_line_or_of_the_list() -> None:
    assert decode(task_of(context(), REQUEST, 0), RemoteTask).options.flags.nproc_per_node == 8
    given = context(LaunchFlags(nproc_per_node=2))
    assert decode(task_of(given, REQUEST, 0), RemoteTask).options.flags.nproc_per_node == 2


def test_a_host_that_was_not_reached_is_silent_once() -> None:
    refused = Unreached("node03", 2, "refused", "Connection refused", 1.0)
    snapshot = with_unreached(with_silent(cluster(4), "node03"), (refused,))
    assert snapshot.unreached == (refused,)
    assert [silent.host for silent in snapshot.silent] == ["node03"]


def test_a_host_that_was_lost_at_the_end_is_silent_too_under_its_own_name() -> None:
    listed = Unreached("10.0.0.3", 2, "lost", "Connection closed", 9.0)
    snapshot = with_unreached(cluster(4), (listed,))
    assert snapshot.unreached == (replace(listed, host="node03"),)
    (silent,) = snapshot.silent
    assert (silent.host, silent.node_rank) == ("node03", 2)
