"""Which ports of which RDMA devices NET/IB uses, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number, strtoll

ANY = -1  # of a port, rail or plane: not given


class HcaEntry(Struct, frozen=True):
    """One entry of NCCL_IB_HCA: a name, and a port where one is given. Rail and plane only label the port."""

    name: str
    port: int = ANY
    rail: int = ANY
    plane: int = ANY


class HcaPattern(Struct, frozen=True):
    """A parsed NCCL_IB_HCA; see `parse`."""

    exclude: bool
    exact: bool
    entries: tuple[HcaEntry, ...]

    def matches(self, device: str, port: int) -> bool:
        """Return True if NCCL keeps that port. An empty list covers every port, so `^` alone leaves none."""
        return (
            not self.entries or any(self._covers(entry, device, port) for entry in self.entries)
        ) != self.exclude

    def _covers(self, entry: HcaEntry, device: str, port: int) -> bool:
        is_named = device == entry.name if self.exact else device.startswith(entry.name)
        return is_named and entry.port in (ANY, port)


@lru_cache(maxsize=1024)
def parse(value: str | None, version: str = versions.NEWEST) -> HcaPattern:
    """Return the pattern NCCL makes of NCCL_IB_HCA: one `^`, then one `=`, then `name[:port]` in a comma list.

    Names are prefixes unless it begins with `=`. Nothing is trimmed, empty entries vanish, at most 32 (16 up to
    2.18.3) are kept. A colon without a number means port 0, which no device has; from 2.30.7 it means any port, and
    `:rail:plane` may follow. NCCL src/transport/net_ib.cc (ncclIbInit), src/misc/utils.cc (parseStringList).
    """
    text = value or ""
    exclude = text.startswith("^")
    text = text[1:] if exclude else text
    exact = text.startswith("=")
    text = text[1:] if exact else text
    rules = versions.parse(version)
    entries = (_entry(part, rules) for part in text.split(","))
    return HcaPattern(exclude, exact, tuple(entry for entry in entries if entry.name)[: most_devices(rules)])


def most_devices(version: versions.Version) -> int:
    """MAX_IB_DEVS: how many ports NET/IB takes, and how many entries NCCL_IB_HCA may have."""
    return 32 if version >= versions.MORE_IB_DEVICES_SINCE else 16


def _entry(text: str, version: versions.Version) -> HcaEntry:
    if version < versions.RAIL_AND_PLANE_SINCE:
        name, colon, rest = text.partition(":")
        return HcaEntry(name, _atoi(rest)) if colon else HcaEntry(name)
    name, *numbers = text.split(":")
    return HcaEntry(name, *(_atoi(entry) if entry else ANY for entry in numbers[:3]))


def _atoi(text: str) -> int:
    """C's atoi(3): decimal, without a number 0. `010` is ten."""
    stripped = text.lstrip(" \t\n\v\f\r")
    sign = stripped[:1] if stripped[:1] in {"-", "+"} else ""
    digits = stripped[len(sign) :].lstrip("0")
    value = strtoll(sign + digits).value if digits[:1].isdigit() else 0
    return value if value is not None else 0


def selected_ports(
    ports: Sequence[RdmaPort], environment: Mapping[str, str], version: str
) -> Fact[tuple[RdmaPort, ...]]:
    """Return the ports NET/IB uses, in its order, of devices that can be opened.

    A port counts when it is ACTIVE, its link layer is InfiniBand or Ethernet, and NCCL_IB_HCA keeps it. The order is
    the kernel's; from 2.29.7 it is that of PCI addresses unless NCCL_IB_DEVICE_PCI_ORDER=0. Missing where the state or
    the link layer of a port that would count was not read.
    """
    rules = versions.parse(version)
    pattern = parse(environment.get("NCCL_IB_HCA"), version)
    found = []
    for port in ports:
        if not pattern.matches(port.device, port.port) or is_ruled_out(port):
            continue
        for what, value in (("state", port.state), ("link layer", port.link_layer)):
            if isinstance(value, Missing):
                return Missing(value.missing, f"the {what} of {name_of(port)} was not read")
        found.append(port)
    selected = found[: most_devices(rules)]
    if (
        rules >= versions.IB_SORTED_BY_PCI_SINCE
        and number(environment.get("NCCL_IB_DEVICE_PCI_ORDER"), 1, version) != 0
    ):
        selected.sort(key=_pci_order)
    return tuple(selected)


def is_ruled_out(port: RdmaPort) -> bool:
    """Return True if it is known that NET/IB skips the port: not ACTIVE, or another link layer (EFA has none)."""
    is_inactive = isinstance(port.state, str) and port.state != "ACTIVE"
    return is_inactive or (
        isinstance(port.link_layer, str) and port.link_layer not in {"InfiniBand", "Ethernet"}
    )


def name_of(port: RdmaPort) -> str:
    """Return a port as NCCL writes it: mlx5_0:1."""
    return f"{port.device}:{port.port}"


def names_of(ports: Iterable[RdmaPort]) -> str:
    """Ports in one line."""
    return ", ".join(name_of(port) for port in ports)


def _pci_order(port: RdmaPort) -> tuple[bool, int]:
    """By the digits of the PCI address (ncclIbCompareDevs); a device without one is last."""
    digits = "" if isinstance(port.pci, Missing) else "".join(entry for entry in port.pci if entry.isalnum())
    try:
        return False, int(digits, 16)
    except ValueError:
        return True, 0
