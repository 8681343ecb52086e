"""A task of LSF's jsrun."""

from __future__ import annotations

from ncclcheck.launch.launchers.jsm import detect_jsm

TASK = {
    "JSM_NAMESPACE_RANK": "5",
    "JSM_NAMESPACE_SIZE": "8",
    "JSM_NAMESPACE_LOCAL_RANK": "1",
    "JSM_NAMESPACE_LOCAL_SIZE": "4",
    "LSB_MCPU_HOSTS": "launch1 1 node7 42 node9 42",
    "LSB_JOBID": "17",
}


def test_rank_node_and_hosts() -> None:
    launch = detect_jsm(TASK)
    assert launch is not None
    assert (launch.source, launch.rank, launch.world_size, launch.local_rank) == ("jsm", 5, 8, 1)
    assert (launch.told, launch.local_world_size, launch.hosts) == ("local-rank", 4, ("node7", "node9"))
    assert (launch.master_addr, launch.master_port) == ("node7", 29500)


def test_without_hosts_the_address_is_the_users() -> None:
    launch = detect_jsm({**TASK, "LSB_MCPU_HOSTS": "", "MASTER_ADDR": "head"})
    assert launch is not None
    assert (launch.master_addr, launch.hosts) == ("head", ())


def test_nobody_else() -> None:
    assert detect_jsm({"LSB_JOBID": "17"}) is None
