"""The kernel's word on its clock."""

from __future__ import annotations

import pytest

from ncclcheck.facts.host.kernel_clock import clock_of, read_clock
from ncclcheck.model.fact import Missing


def test_the_kernel_of_this_machine_answers() -> None:
    clock = read_clock()
    assert not isinstance(clock, Missing), clock
    assert 0 <= clock.max_error_us <= 16_000_000 * 2
    assert isinstance(clock.source, str | Missing)


@pytest.mark.parametrize(
    ("state", "status", "synchronised"),
    [(0, 0x2001, True), (1, 0x2001, True), (5, 0x40, False), (0, 0x41, False), (5, 0, False)],
)
def test_either_sign_of_the_kernel_counts(state: int, status: int, synchronised: bool) -> None:
    assert clock_of(state, status, 1000).synchronised is synchronised
