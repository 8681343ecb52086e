"""Settings that name devices of a node, against the devices it has: NCCL_IB_HCA and TP_SOCKET_IFNAME."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.environment._settings import EnvironmentPlace, SettingFault, shown
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Fix
from ncclcheck.model.formats.prose import listed
from ncclcheck.nccl import versions
from ncclcheck.nccl.rdma import hca

_HCA, _TENSORPIPE = "NCCL_IB_HCA", "TP_SOCKET_IFNAME"
_MOST = 4


def rdma_devices(place: EnvironmentPlace) -> Iterator[SettingFault]:
    """NCCL_IB_HCA where it takes more devices than it names (`mlx5_1` takes mlx5_10 too), or none of those there are.

    Only devices that NET/IB could use count. Nothing is said where a state or a link layer was not read.
    """
    value, rdma = place.value(_HCA), place.facts.rdma
    if not value or isinstance(rdma, Missing):
        return
    ports = [port for port in rdma.ports if not hca.is_ruled_out(port)]
    if not ports or any(
        isinstance(state, Missing) for port in ports for state in (port.state, port.link_layer)
    ):
        return
    pattern = hca.parse(value, place.nccl or versions.NEWEST)
    taken = [port for port in ports if pattern.matches(port.device, port.port)]
    names = tuple(dict.fromkeys(port.device for port in ports))
    if not taken:
        # Otherwise blanks and quotes are the fault, or NET/IB is not meant to be used.
        if not re.search(r"[\s\"']", value) and _uses_ib(place):
            yield _none_left(value, names)
        return
    all_names = {port.device for port in rdma.ports}
    named = {entry.name for entry in pattern.entries}
    extra = tuple(dict.fromkeys(port.device for port in taken if _only_begins(port.device, named)))
    if extra and not pattern.exact and not pattern.exclude and named.issubset(all_names):
        yield _too_many(value, extra)


def _uses_ib(place: EnvironmentPlace) -> bool:
    """Return True unless InfiniBand is turned off, or NCCL_NET names another network."""
    network = (place.value("NCCL_NET") or "ib").lower()
    return place.number("NCCL_IB_DISABLE", 0) == 0 and network == "ib"


def _only_begins(device: str, named: set[str]) -> bool:
    """Return True for mlx5_10 where mlx5_1 is named: its number only begins with the other one."""
    return device not in named and any(
        device.startswith(name) and name[-1:].isdigit() and device[len(name)].isdigit() for name in named
    )


def _none_left(value: str, names: tuple[str, ...]) -> SettingFault:
    return SettingFault(
        "warning",
        (_HCA,),
        shown(_HCA, value),
        f"it matches none of the usable RDMA devices ({listed(names, _MOST)}), so NCCL uses TCP, or fails "
        "with NCCL_NET=IB",
        f"names among {listed(names, _MOST)}",
        "NCCL src/transport/net_ib (ncclIbInit)",
        Fix("name devices that the node has, or remove it", ("ls /sys/class/infiniband", f"unset {_HCA}")),
    )


def _too_many(value: str, extra: tuple[str, ...]) -> SettingFault:
    return SettingFault(
        "warning",
        (_HCA,),
        shown(_HCA, value),
        f"the names are prefixes, so it also matches {listed(extra, _MOST)}",
        f"{_HCA}=={value}",
        "NCCL src/transport/net_ib (ncclIbInit), src/misc/utils.cc (matchIfList)",
        Fix("write = in front to make the names exact", (), {_HCA: f"={value}"}),
    )


def tensorpipe_interface(place: EnvironmentPlace) -> Iterator[SettingFault]:
    """TP_SOCKET_IFNAME where it is not the exact name of one interface that has an address."""
    value, interfaces = place.value(_TENSORPIPE), place.facts.interfaces
    if not value or isinstance(interfaces, Missing):
        return
    with_address = {
        address.label or interface.name for interface in interfaces for address in interface.addresses
    }
    if value in with_address | {interface.name for interface in interfaces if interface.addresses}:
        return
    usable = tuple(
        interface.name for interface in interfaces if interface.addresses and interface.kind != "loopback"
    )
    yield SettingFault(
        "warning",
        (_TENSORPIPE,),
        shown(_TENSORPIPE, value),
        "TensorPipe needs the exact name of one interface with an address, finds none, and uses "
        "127.0.0.1, which other nodes cannot reach",
        f"one of {listed(usable, _MOST)}",
        "torch/csrc/distributed/rpc/tensorpipe_agent.cpp (guessAddress)",
        Fix("write the exact name", (), {_TENSORPIPE: usable[0]})
        if len(usable) == 1
        else Fix("write the exact name of one interface, or remove it", (f"unset {_TENSORPIPE}",)),
    )
