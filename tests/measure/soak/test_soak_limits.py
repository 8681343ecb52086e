"""What an order to soak may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.measure.soak.soak_limits import soak_faults
from tests.soak_builders import PLAN


def test_the_usual_plan_is_followed() -> None:
    assert list(soak_faults(PLAN)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"duration_s": 1e9},
        {"duration_s": -1.0},
        {"every_s": 0.0},
        {"drop": 2.0},
        {"duty": 0.0},
        {"first": -1},
    ],
)
def test_what_is_out_of_bounds_is_refused(changes: dict[str, Any]) -> None:
    assert list(soak_faults(replace(PLAN, **changes)))
