"""Releases of NCCL that are known to hang."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.known_hangs import known_hangs


@pytest.mark.parametrize(
    ("version", "machine", "hangs"),
    [
        ("2.28.7", "aarch64", False),
        ("2.28.9", "aarch64", True),
        ("2.29.2", "aarch64", True),
        ("2.29.3", "aarch64", False),
        ("2.30.7", "aarch64", False),
        ("2.28.9", "x86_64", False),
    ],
)
def test_the_released_wheels_that_were_bisected(version: str, machine: str, *, hangs: bool) -> None:
    assert bool(known_hangs(version, machine)) == hangs
