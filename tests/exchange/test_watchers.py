"""Where the watchers of a job meet: beside the job's port, with a key or without."""

from __future__ import annotations

import socket

import pytest

from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.exchange.watchers import Meeting, join_watchers, serve_watchers
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.fact import Missing
from tests.ports import free_port

KEY = RunKey(b"0123456789abcdef", "a test")


def _meeting(port: int, node_rank: int = 0, key: RunKey | None = None, master_port: int = 29500) -> Meeting:
    flags = LaunchFlags(nnodes=2, node_rank=node_rank, master_addr="127.0.0.1", master_port=master_port)
    return Meeting(detect({}, flags), f"node{node_rank}", Trust(key), port)


def _served(meeting: Meeting) -> Store:
    store = serve_watchers(meeting)
    assert not isinstance(store, Missing), store
    return store


def test_the_ports_are_not_the_job_s_own_and_the_same_on_all_nodes() -> None:
    ports = _meeting(0).ports
    assert ports == (19493, 19494, 19495, 19496) == _meeting(0, node_rank=1).ports
    assert _meeting(0, master_port=5000).ports[0] == 15007
    assert _meeting(4711).ports == (4711,)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_watcher_joins_and_both_see_the_same_store(key: RunKey | None) -> None:
    port = free_port()
    served = _served(_meeting(port, key=key))
    try:
        joined = join_watchers(_meeting(port, 1, key))
        assert not isinstance(joined, Missing), joined
        joined.set("a", b"b")
        assert served.get("a") == b"b"
        joined.close()
    finally:
        served.close()


@pytest.mark.parametrize("theirs", [None, RunKey(b"fedcba9876543210", "another")])
def test_a_watcher_with_another_key_or_none_is_refused(theirs: RunKey | None) -> None:
    port = free_port()
    served = _served(_meeting(port, key=KEY))
    try:
        refused = join_watchers(_meeting(port, 1, theirs))
        assert isinstance(refused, Missing)
        assert refused.missing == "denied"
    finally:
        served.close()


def test_the_watchers_of_another_job_are_not_met() -> None:
    port = free_port()
    served = _served(_meeting(port, master_port=29501))
    try:
        assert isinstance(join_watchers(_meeting(port, 1)), Missing)
    finally:
        served.close()


def test_a_port_that_is_taken_is_passed_by_and_said_where_it_is_the_only_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failed = serve_watchers(_meeting(taken.getsockname()[1]))
        assert isinstance(failed, Missing)
        assert str(taken.getsockname()[1]) in failed.detail
