"""The versions of torch on the fake CUDA stack, as a fixture."""

from __future__ import annotations

import pytest

from tests.fake_gpu.stack import FakeTorch, given


@pytest.fixture(params=given())
def torch(request: pytest.FixtureRequest) -> FakeTorch:
    """One version of torch on the fake CUDA stack."""
    fake: FakeTorch = request.param
    return fake
