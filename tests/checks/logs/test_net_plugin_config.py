"""NC930 net-plugin-config: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_ofi() -> None:
    text = (
        "i1:1:2 [0] NCCL INFO NET/Plugin: Loaded net plugin AWS Libfabric (v8)\n"
        "i1:1:2 [0] nccl_net_ofi_create_plugin:210 NCCL WARN NET/OFI Failed to initialize sendrecv proto"
        "col\n"
        "i1:1:2 [0] plugin/net.cc:200 NCCL WARN Failed to initialize any NET plugin\n"
    )
    assert_cause(text, "net-plugin-config")


def test_name() -> None:
    text = "i1:1:2 [0] net.cc:330 NCCL WARN Error: network FOO not found.\n"
    assert_cause(text, "net-plugin-config")
