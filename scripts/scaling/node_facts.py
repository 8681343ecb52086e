"""The facts of simulated nodes: this machine's own, with the hardware of a node with eight GPUs, and its own names."""

from __future__ import annotations

import os

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.node_facts import collect
from ncclcheck.facts.section import FactsRequest
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Address, Gpu, NodeFacts
from ncclcheck.model.gpu import GpuWork
from ncclcheck.model.launch import Launch
from scripts.scaling.network import FIRST, INTERFACE, address_of
from tests.builders import cluster
from tests.hardware_builders import with_hardware

_HARDWARE = ("gpus", "gpu_work", "pci", "kernel", "limits")


def launch_of(node_rank: int, nnodes: int, port: int) -> Launch:
    """Return who that node is: as its command line would say."""
    flags = LaunchFlags(
        nnodes=nnodes, node_rank=node_rank, master_addr=str(FIRST), master_port=port, nproc_per_node=None
    )
    return detect({}, flags, None)


_NAMED = ("gpus", "gpu_work")  # sections with serial numbers of the node


class _Named(Struct):
    gpus: Fact[tuple[Gpu, ...]]
    gpu_work: Fact[tuple[GpuWork, ...]]


def host_of(node_rank: int) -> str:
    """Return the name of that node."""
    return f"sim{node_rank:05d}"


class Model:
    """The facts of any simulated node. State: those of this machine, read once; of some sections the text."""

    def __init__(self, least_bytes: int) -> None:
        launch = launch_of(0, 2, 29500)
        local_facts = collect(FactsRequest(launch=launch, environment=dict(os.environ)))
        like = with_hardware(cluster(2)).nodes[1].facts
        like = replace(local_facts, **{name: getattr(like, name) for name in _HARDWARE})
        self._like = _padded(like, least_bytes)
        self._text = encode({name: getattr(like, name) for name in _NAMED}).decode()
        self.bytes = len(encode(self._like))

    def facts(self, node_rank: int, launch: Launch) -> NodeFacts:
        """Return the facts of that node: its own names, addresses and serial numbers."""
        # What all nodes have in common is one object: the nodes of a process share its memory.
        text = self._text.replace("GPU-node02", f"GPU-node{node_rank}")
        facts = replace(self._like, **{name: getattr(decode(text, _Named), name) for name in _NAMED})
        address = address_of(node_rank)
        interfaces = facts.interfaces
        if not isinstance(interfaces, Missing):
            interfaces = tuple(
                replace(
                    interface,
                    addresses=tuple(
                        _moved(found, address) for found in interface.addresses if found.family == "inet"
                    ),
                )
                if interface.name == INTERFACE
                else interface
                for interface in interfaces
            )
        names = facts.names
        if not isinstance(names, Missing):
            names = replace(names, hostname=host_of(node_rank), fqdn=host_of(node_rank), addresses=(address,))
        nccl = facts.nccl
        if not isinstance(nccl, Missing) and not isinstance(nccl.asked, Missing):
            nccl = replace(nccl, asked=replace(nccl.asked, address=address))
        return replace(facts, launch=launch, interfaces=interfaces, names=names, nccl=nccl)


def _moved(found: Address, address: str) -> Address:
    return replace(found, address=address)


def _padded(facts: NodeFacts, least_bytes: int) -> NodeFacts:
    """Return the facts with further PCI devices like those that are there, until they are as large as asked for."""
    pci, domain = facts.pci, 1
    while not isinstance(pci, Missing) and pci.devices and len(encode(replace(facts, pci=pci))) < least_bytes:
        further = tuple(
            replace(device, address=f"{domain:04x}{device.address[4:]}") for device in pci.devices[:14]
        )
        pci, domain = replace(pci, devices=(*pci.devices, *further)), domain + 1
    return replace(facts, pci=pci)
