"""Orders to measure pairs: only what node 0 itself would ask for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.bench.pairs.pair_orders import PairsOrder, PairsRound, pairs_faults

ORDER = PairsOrder("gloo", 1 << 26, "0123456789abcdef", {"1": {"GLOO_SOCKET_IFNAME": "eth0"}})


def test_an_order_of_ours_is_followed() -> None:
    assert list(pairs_faults(ORDER, 1)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "../../etc"},
        {"most_bytes": 1 << 60},
        {"most_bytes": 0},
        {"rails": 0},
        {"rails": 1 << 20},
        {"environments": {"1": {"LD_PRELOAD": "/tmp/x.so"}}},
    ],
)
def test_another_one_is_refused(changes: dict[str, object]) -> None:
    assert list(pairs_faults(replace(ORDER, **changes), 1))


def test_a_node_finds_its_pair() -> None:
    planned = PairsRound("1", "x", 1, ((1, 2), (4, 3)))
    assert planned.group_of(3) == (4, 3)
    assert planned.group_of(9) is None
