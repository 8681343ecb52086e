"""NC406 nvlink-down."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import GpuOn, by_text, closing, listed_gpus, values
from ncclcheck.checks.hosts import named
from ncclcheck.checks.majority import compare
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.gpu import NvLink
from ncclcheck.model.snapshot import Snapshot

_CLEAR_MAJORITY = 0.75
_FIX = Fix(
    "list the links and their errors; reset the GPU or reboot, and have the hardware inspected if "
    "links stay down",
    ("nvidia-smi nvlink -s", "nvidia-smi nvlink -e"),
)


@check(
    "NC406",
    "nvlink-down",
    "Every GPU has as many active NVLinks as others of its model",
    alike=("gpus", "pci", "torch_gpus"),
)
def nvlink_down(snapshot: Snapshot) -> Iterator[Answer]:
    """No GPU has fewer active NVLinks than most GPUs of the same product, on all nodes.

    The expected number is what most GPUs of the product have in this run, not a table: a board has different links
    active in different machines, and some links are inactive by design.

    ## Why it matters
    A GPU with links down moves its share of every collective over the remaining links, or NCCL uses PCIe instead. All
    ranks wait for it.

    ## How to fix
    `nvidia-smi nvlink -s` and `-e` name the links. A reset or reboot trains the links again. A link that stays down
    is a hardware fault.

    ## Source
    nvmlDeviceGetNvLinkState of every link; the comparison is ours.
    """
    known, unknown = values(listed_gpus(snapshot), "nvlinks")
    yield from unknown
    products: dict[str, list[tuple[GpuOn, tuple[NvLink, ...]]]] = {}
    unread_of: dict[int, list[NvLink]] = {}  # by object: equal links were decoded as one
    for on, links in known:
        if (unread := unread_of.get(id(links))) is None:
            unread = unread_of[id(links)] = [link for link in links if isinstance(link.active, Missing)]
        if unread or isinstance(on.gpu.name, Missing):
            why = unread[0].active if unread else on.gpu.name
            yield NotKnown(f"NVLinks of GPU {on.gpu.index}: {why}", (on.host,))
        else:
            products.setdefault(on.gpu.name, []).append((on, links))
    for product, gpus in products.items():
        yield from _product(product, gpus)
    yield from closing(snapshot, any(links for _, links in known), "has NVLinks")


def _product(product: str, gpus: list[tuple[GpuOn, tuple[NvLink, ...]]]) -> Iterator[Answer]:
    different = {id(links): links for _, links in gpus}  # equal links were decoded as one object
    count_of = {key: sum(link.active is True for link in links) for key, links in different.items()}
    active = {(on.host, on.gpu.index): count_of[id(links)] for on, links in gpus}
    comparison = compare((str(place), count) for place, count in active.items())
    if not comparison.differs:
        return
    usual = comparison.usual
    # In a tie nobody is the odd one, but a link that is up on like GPUs is missed where it is down.
    expected = max(active.values()) if usual is None else usual.value
    clear = usual is not None and len(usual.hosts) >= _CLEAR_MAJORITY * len(gpus)
    severity: Severity = "error" if clear else "warning"
    fewer = [
        (on.host, f"{on.label} has {_count(active[on.host, on.gpu.index])}{_down(links)}")
        for on, links in gpus
        if active[on.host, on.gpu.index] < expected
    ]
    tie = "" if usual is not None else " (no majority: as many have fewer)"
    for text, hosts in by_text(fewer):
        yield Finding(
            severity,
            f"{named(hosts)}: NVLinks are down: {text}, where other {product} have {expected}{tie}: every collective "
            "waits for the slowest GPU",
            hosts,
            (Evidence(hosts, "active NVLinks", text, str(expected), "NVML, nvmlDeviceGetNvLinkState"),),
            (_FIX,),
        )


def _count(number: int) -> str:
    return f"{number} active NVLink" if number == 1 else f"{number} active NVLinks"


def _down(links: tuple[NvLink, ...]) -> str:
    down = [str(link.link) for link in links if link.active is False]
    return f" (down: {', '.join(down)})" if 0 < len(down) < len(links) else ""
