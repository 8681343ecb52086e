"""The work by which GPUs are compared."""

from __future__ import annotations

import pytest
import torch

from ncclcheck.bench.gpu.gpu_health import HealthWatch
from ncclcheck.bench.gpu.gpu_parts import gpu_parts
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.cuda_stand_in import install
from tests.bench.gpu.nvml_stand_in import Nvml

pytestmark = pytest.mark.slow  # imports torch


def test_the_work_of_a_real_gpu_is_what_its_amount_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, where the same calls of torch do the same work."""
    install(Machine([Gpu()]), monkeypatch)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    scratch = torch.zeros(4 << 20, dtype=torch.uint8)
    parts = gpu_parts(torch.device("cpu"), scratch, HealthWatch("", Nvml))
    product = parts.multiply(lambda _: 1e6)  # too slow for the large one
    product.call()
    left, right, result = scratch[: 3 * 512 * 512 * 2].view(torch.float16).view(3, 512, 512)
    assert product.amount == 2 * 512**3
    assert torch.equal(result, left @ right)
    scratch[2 << 20 :] = 7
    within = parts.copy_within()
    within.call()
    assert within.amount == 2 << 20
    assert set(scratch[: 2 << 20].tolist()) == {7}
    from_host = parts.copy_from_host()
    from_host.call()
    assert from_host.amount == 4 << 20
    assert set(scratch.tolist()) == {1}
