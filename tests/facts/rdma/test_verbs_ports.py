"""The active MTU as a libibverbs tells it that was compiled for the test: answers, refuses, hangs, crashes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncclcheck.facts.rdma.verbs_ports import with_active_mtu
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Rdma
from tests.facts.compiled import needs_compiler, shared_library
from tests.nccl.hardware import NO_LIBRARY, port, rdma

# Three devices: mlx5_0 answers, mlx5_1 cannot be opened, mlx5_2 does what FAULT says.
SOURCE = """
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
static const char *names[] = {"mlx5_0", "mlx5_1", "mlx5_2"};
static void *devices[] = {names, names + 1, names + 2, 0};
void **ibv_get_device_list(int *count) { *count = 3; return devices; }
const char *ibv_get_device_name(void *device) { return *(const char **)device; }
void *ibv_open_device(void *device) {
  if (device == devices[1]) { errno = EACCES; return 0; }
  return device;
}
int ibv_query_port(void *context, uint8_t port, int *attributes) {
  if (context == devices[2]) { FAULT }
  if (port != 1) return EINVAL;
  attributes[1] = 5;
  attributes[2] = MTU;
  return 0;
}
"""
DEVICES = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")


def asked(tmp_path: Path, fault: str = "return EINVAL;", mtu: int = 5, deadline_s: float = 20.0) -> Rdma:
    library = shared_library(
        tmp_path / "libibverbs.so.1", SOURCE.replace("FAULT", fault).replace("MTU", str(mtu))
    )
    section = rdma(*(port(name, active_mtu=NO_LIBRARY) for name in DEVICES), verbs_library=library)
    return with_active_mtu(section, os.environ, deadline_s)


def test_without_a_library_nothing_is_told() -> None:
    section = with_active_mtu(rdma(port(), verbs_library=NO_LIBRARY), os.environ, 20.0)
    assert section.ports[0].active_mtu == Missing("absent", f"libibverbs: {NO_LIBRARY.detail}")


@needs_compiler
@pytest.mark.parametrize(("number", "expected"), [(1, 256), (3, 1024), (5, 4096)])
def test_the_mtu_in_use_is_told_in_bytes(tmp_path: Path, number: int, expected: int) -> None:
    assert asked(tmp_path, mtu=number).ports[0].active_mtu == expected


@needs_compiler
def test_each_port_fails_on_its_own(tmp_path: Path) -> None:
    first, denied, refused, unlisted = (rdma_port.active_mtu for rdma_port in asked(tmp_path).ports)
    assert first == 4096
    assert denied == Missing("denied", "the device cannot be opened: Permission denied")
    assert refused == Missing("error", "ibv_query_port: Invalid argument")
    assert unlisted == Missing("absent", "libibverbs lists no mlx5_3")


@needs_compiler
def test_a_number_that_no_mtu_has_is_not_believed(tmp_path: Path) -> None:
    assert asked(tmp_path, mtu=9).ports[0].active_mtu == Missing(
        "error", "ibv_query_port: MTU 9 is not known"
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("fault", "why"), [("for (;;) pause();", "timeout"), ("abort();", "error")])
def test_a_device_that_hangs_or_crashes_costs_what_came_after_it(
    tmp_path: Path, fault: str, why: str
) -> None:
    first, _, stuck, last = (
        rdma_port.active_mtu for rdma_port in asked(tmp_path, fault, deadline_s=1.5).ports
    )
    assert first == 4096
    for one in (stuck, last):
        assert isinstance(one, Missing)
        assert one.missing == why
