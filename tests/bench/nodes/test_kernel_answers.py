"""Kernels are asked once for each silence, and what they answer is known without waiting."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ncclcheck.bench.nodes.kernel_answers import MOST_ASKED, KernelAnswers
from tests.exchange.probe.test_dial import full_queue
from tests.waiting import until

ADDRESSES = {"node02": "127.0.0.2", "node03": "127.0.0.3"}


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def known(kernels: KernelAnswers, *silent: str) -> dict[str, bool | None]:
    until(lambda: None not in kernels.look(silent).values(), "an answer of each kernel, or none in time", 20)
    return kernels.look(silent)


def test_a_kernel_that_refuses_answers(closed_port: int) -> None:
    kernels = KernelAnswers(ADDRESSES, closed_port)
    assert kernels.look(["node02"]) == {"node02": None} or kernels.look(["node02"]) == {"node02": True}
    assert known(kernels, "node02") == {"node02": True}
    assert kernels.look([]) == {}  # it speaks again


def test_a_kernel_that_says_nothing_does_not_answer() -> None:
    with full_queue("127.0.0.1") as port:
        assert known(KernelAnswers({"node02": "127.0.0.1"}, port), "node02") == {"node02": False}


def test_an_address_of_several_hosts_and_a_host_without_one_are_not_asked(closed_port: int) -> None:
    kernels = KernelAnswers({**ADDRESSES, "node04": "127.0.0.2"}, closed_port)
    assert known(kernels, "node02", "node03", "node05") == {"node03": True}


def test_of_many_silent_hosts_only_some_are_asked(closed_port: int) -> None:
    many = {f"node{number}": f"127.0.1.{number}" for number in range(1, 100)}
    assert len(KernelAnswers(many, closed_port).look(list(many))) == MOST_ASKED
