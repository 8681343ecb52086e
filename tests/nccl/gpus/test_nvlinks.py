"""What NVLinks join, by where each of them leads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.model.gpu import GpuState, NvLink
from ncclcheck.nccl.gpus.nvlinks import Joined, active_links, are_joined, joined
from tests.nccl.hardware import UNREAD, bus
from tests.nccl.hardware import gpu as pci_gpu

SWITCH = "0000:c2:00.0"
HIDDEN = "fffffff:ffff:ff"


def address(index: int) -> str:
    return f"0000:{0x1B + index:02x}:00.0"


def machine(*ends: tuple[int | str | Missing, ...]) -> NodeFacts:
    """GPUs whose links lead to GPUs of those numbers, or to those addresses."""
    gpus = []
    for index, remotes in enumerate(ends):
        links = tuple(
            NvLink(link, True, address(remote) if isinstance(remote, int) else remote)
            for link, remote in enumerate(remotes)
        )
        gpus.append(Gpu(index, "GPU", f"GPU-{index}", address(index), 1, GpuState(nvlinks=links)))
    return NodeFacts(gpus=tuple(gpus))


def gpus_of(facts: NodeFacts) -> tuple[Gpu, ...]:
    assert not isinstance(facts.gpus, Missing)
    return facts.gpus


@pytest.mark.parametrize(
    ("facts", "how"),
    [
        (machine((SWITCH,), (SWITCH,), (SWITCH,)), "switch"),
        (machine((HIDDEN,), (HIDDEN,)), "switch"),
        (machine((1, 1), (0, 0)), "ring"),
        (machine((1,), (0,), (3,), (2,)), "some"),
        (machine((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)), "ring"),
        (machine((1,), (0, 2), (1,)), "some"),
        (machine((1,), (0,), ()), "some"),
        (machine((), ()), "none"),
        (machine((UNREAD,), (UNREAD,)), "unknown"),
        (machine((1, UNREAD), (0,)), "unknown"),
        (machine(), "unknown"),
    ],
)
def test_how_the_gpus_are_joined(facts: NodeFacts, how: Joined) -> None:
    assert joined(gpus_of(facts), facts) == how


def test_a_part_of_the_gpus_is_judged_by_its_own_links() -> None:
    facts = machine((1,), (0,), (3,), (2,))
    gpus = gpus_of(facts)
    assert joined(gpus[:2], facts) == "ring"
    assert joined(gpus[1:3], facts) == "some"
    assert are_joined(gpus[2], gpus[3], facts)
    assert not are_joined(gpus[0], gpus[2], facts)


def test_a_gpu_that_only_the_bus_shows_is_no_switch() -> None:
    facts = replace(machine((5,), (5,)), pci=bus(pci_gpu(address(5))))
    assert joined(gpus_of(facts), facts) == "some"


def test_what_was_not_read_may_join() -> None:
    facts = machine((UNREAD,), (UNREAD,), ())
    gpus = gpus_of(facts)
    assert are_joined(gpus[0], gpus[1], facts)
    assert not are_joined(gpus[0], gpus[2], facts)


def test_only_active_links_count() -> None:
    (gpu,) = gpus_of(machine((0, 1)))
    down = (NvLink(0, False), NvLink(1, Missing("error", "lost")))
    assert active_links(gpu) == 2
    assert active_links(replace(gpu, state=replace(gpu.state, nvlinks=down))) == 0
    assert active_links(replace(gpu, state=replace(gpu.state, nvlinks=UNREAD))) is None
