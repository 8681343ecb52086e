"""NC909 ifname-missing: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_a_name_that_one_host_lacks() -> None:
    text = (
        "h5:9:9 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp12s0\n"
        "h5:9:9 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
        "h5:9:9 [0] NCCL INFO init.cc:82 -> 3\n"
    )
    assert_cause(text, "ifname-missing", {"h5"})


def test_gloo_takes_exact_names() -> None:
    text = (
        "[rank4]: RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] if"
        "a != nullptr. Unable to find address for: eth\n"
    )
    assert_cause(text, "ifname-missing", {"rank 4"})
