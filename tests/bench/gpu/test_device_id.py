"""Which versions of torch get the device of a process group."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from ncclcheck.bench.gpu.device_id import device_id


class Device(Struct, frozen=True):
    """What is asked of a torch.device."""

    type: str


GPU, CPU = Device("cuda"), Device("cpu")


def since_2_3(backend: str, *, device_id: Any = None) -> None: ...


def until_2_2(backend: str) -> None: ...


@pytest.mark.parametrize(
    "version", ["2.3.0", "2.6.0", "2.6.0+cu124", "2.7.1", "2.7.1+cu126", "2.15.0", "none"]
)
def test_a_group_of_gpus_is_told_its_device(version: str) -> None:
    assert device_id(since_2_3, version, GPU) == {"device_id": GPU}


@pytest.mark.parametrize(
    "version", ["2.6.1", "2.7.0", "2.7.0+cu128", "2.7.0a0+7c8ec84dab.nv25.03", "2.7.1rc1"]
)
def test_no_group_gets_a_device_where_that_makes_it_hang(version: str) -> None:
    assert device_id(since_2_3, version, GPU) == {}


def test_a_torch_that_has_no_such_argument_does_not_get_it() -> None:
    assert device_id(until_2_2, "2.2.2", GPU) == {}


def test_a_group_on_the_cpu_needs_none() -> None:
    assert device_id(since_2_3, "2.13.0", CPU) == {}
