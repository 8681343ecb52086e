"""Parts that are settled before anything is measured; `test_block.py` has what the libraries say to a proposal."""

from __future__ import annotations

from ncclcheck.advice.proof import in_words, settle
from tests.advice.clusters import configured, two_networks, with_rdma
from tests.builders import cluster
from tests.nccl.hardware import port


def test_nothing_is_settled_where_nothing_is_wrong() -> None:
    settled = settle(cluster())
    assert (settled.parts, settled.changes) == ((), {})
    assert len(settled.notes) == 2


def test_each_part_has_its_subject_its_proof_and_its_share_of_all_changes() -> None:
    snapshot = with_rdma(2, port(), NCCL_IB_DISABLE="1", NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="eth")
    settled = settle(snapshot)
    assert [(part.subject, part.proof) for part in settled.parts] == [
        ("sockets", "rule"),  # no library to ask
        ("network", "rule"),
        ("Gloo", "rule"),
    ]
    assert settled.changes["node02"] == {
        "NCCL_SOCKET_IFNAME": None,
        "NCCL_IB_DISABLE": None,
        "GLOO_SOCKET_IFNAME": "eth0",
    }


def test_a_list_that_is_taken_away_and_given_anew_is_one_setting() -> None:
    fast, slow = port("mlx5_0"), port("mlx5_9", rate_gbps=100.0, board_id="MT_0000000359")
    settled = settle(with_rdma(2, fast, slow, NCCL_IB_HCA="hfi1"))
    assert [part.env_by_host["node01"] for part in settled.parts] == [{"NCCL_IB_HCA": "=mlx5_0"}]


def test_hosts_that_need_nothing_are_in_no_change() -> None:
    assert settle(two_networks(2, NCCL_SOCKET_IFNAME="eth1")).changes == {}
    assert set(settle(configured(two_networks(2), "node02", NCCL_SOCKET_IFNAME="lo")).changes) == {
        "node01",
        "node02",
    }


def test_settings_in_words() -> None:
    env: dict[str, dict[str, str | None]] = {"a": {"X": "1", "Y": None}, "b": {"X": "2"}}
    assert in_words(env) == "X=1 and unsetting Y and X=2"
