"""The machine of the verified vectors, and small ways to change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ncclcheck.model.facts import Interface
from tests.fact_builders import interface


@pytest.fixture
def machine() -> list[Interface]:
    """lo, eth0, eth1, docker0, br-abc and virbr0, all up with a carrier, in ifindex order."""
    return [
        interface("lo", "127.0.0.1/8", "::1/128", index=1, kind="loopback"),
        interface("eth0", "10.0.0.1/24", "fe80::1/64", index=2),
        interface("eth1", "10.0.1.1/24", "fd00::1/64", "fe80::2/64", index=3),
        interface("docker0", "172.17.0.1/16", index=4, kind="bridge"),
        interface("br-abc", "172.18.0.1/16", index=5, kind="bridge"),
        interface("virbr0", "192.168.122.1/24", index=6, kind="bridge"),
    ]


@pytest.fixture
def only() -> Callable[..., list[Interface]]:
    """Those interfaces of a machine that are named."""

    def keep(machine: Sequence[Interface], *names: str) -> list[Interface]:
        return [found for found in machine if found.name in names]

    return keep
