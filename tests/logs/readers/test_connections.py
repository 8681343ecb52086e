"""Failed connections of every layer and version: who, why, and whether it was given up."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.connections import read
from ncclcheck.model.events import ConnectFailure, LogPosition, Registered

PLACE = LogPosition("job.log", 1)


@pytest.mark.parametrize(
    ("line", "layer", "address", "reason", "final"),
    [
        ("socketStartConnect: Connect to 10.0.0.1<4> failed : Connection refused", "nccl", "10.0.0.1", "refused", True),
        (
            "socketPollConnect: Connect to 10.0.0.1<4> returned 113(No route to host), errno 115",
            "nccl", "10.0.0.1", "no-route", False,
        ),
        (
            "socketPollConnect: connect to 10.0.0.1<4> returned Connection timed out, retrying (1/34) after sleep",
            "nccl", "10.0.0.1", "timed-out", False,
        ),
        (
            "socketPollConnect: connect to 10.0.0.1<4> returned Connection timed out, exceeded error retry count",
            "nccl", "10.0.0.1", "timed-out", True,
        ),
        ("Net : Connect to 10.0.0.1<4> failed : No route to host", "nccl", "10.0.0.1", "no-route", True),
        (
            "timed out connecting: SO_ERROR: Connection refused, remote=[172.17.0.1]:2436$2",
            "gloo", "172.17.0.1", "refused", True,
        ),
        (
            "RuntimeError: [/x/gloo/transport/tcp/pair.cc:724] connect [::1]:8355: Connection refused",
            "gloo", "::1", "refused", True,
        ),
        (
            "[c10d] The client socket has timed out after 900s while trying to connect to (node01, 29500).",
            "store", "node01", "timed-out", True,
        ),
        (
            "[c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused).",
            "store", "n1", "refused", False,
        ),
    ],
)  # fmt: skip
def test_what_fails(line: str, layer: str, address: str, reason: str, final: bool) -> None:
    (found,) = read(line, PLACE)
    assert isinstance(found, ConnectFailure)
    assert (found.layer, found.address, found.reason, found.final) == (layer, address, reason, final)


def test_a_connection_that_breaks_is_told_from_one_that_is_not_made() -> None:
    (found,) = read(
        "socketProgressOpt: Call to recv from 10.8.1.12<40000> failed : Connection timed out", PLACE
    )
    assert isinstance(found, ConnectFailure)
    assert found.established


@pytest.mark.parametrize(
    ("line", "joined", "expected"),
    [
        ("Timed out after 21 seconds waiting for clients. 5/6 clients joined.", 5, 6),
        ("store_based_barrier_key:1 (world_size=4, worker_count=8, timeout=0:30:00)", 8, 4),
    ],
)
def test_who_came(line: str, joined: int, expected: int) -> None:
    (found,) = read(line, PLACE)
    assert isinstance(found, Registered)
    assert (found.joined, found.expected) == (joined, expected)
