"""NC913 roce-gid: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_link_local_gid() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_2:1/RoCE [RO]; OOB eth1:10.1.0.1<0>\n"
        "a:1:9 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.1.0.2<41021> "
        "with status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2\n"
    )
    assert_cause(text, "roce-gid")


def test_modify_qp_fails() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 1.\n"
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_bond_0:1/RoCE [RO]; OOB bond0:10.1.0.1<0>\n"
        "a:1:9 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed "
        "out\n"
    )
    assert_cause(text, "roce-gid")
