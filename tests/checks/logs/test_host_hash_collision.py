"""NC921 host-hash-collision: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_names_are_addresses() -> None:
    text = (
        "10:500:500 [0] NCCL INFO Bootstrap : Using eth0:10.11.0.1<0>\n"
        "10:600:600 [0] NCCL INFO Bootstrap : Using eth0:10.11.0.2<0>\n"
        "10:600:610 [0] graph/xml.cc:10 NCCL WARN Cuda failure 'invalid device ordinal'\n"
    )
    assert_cause(text, "host-hash-collision")
