"""Builds the /sys, /proc and /dev of small machines, laid out as the kernel lays them out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT_PORT = "0000:15:01.0"
SWITCH = f"pci0000:15/{ROOT_PORT}/0000:16:00.0"
GPU = "0000:1b:00.0"
HCA = "0000:18:00.0"
LINK_LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe10:0020"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a64:000b"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class Tree:
    """A machine below a folder; every method adds to it and nothing is there that was not added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def files(self, folder: str, contents: Mapping[str, str | bytes]) -> Path:
        """Write files; one line of text ends with a line feed, as the kernel's do."""
        for name, content in contents.items():
            path = self.root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
        return self.root / folder

    def link(self, path: str, target: str) -> None:
        """A relative link from `path` to `target`, both from the root of the machine."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.root / target, place.parent))

    def pci(self, below: str, address: str, class_code: str, **more: str | bytes) -> str:
        """A PCI device in the folder `below` of /sys/devices; returns its own folder there."""
        folder = f"{below}/{address}"
        words = {"class": class_code, "vendor": "0x15b3", "device": "0x1021", "numa_node": "0", **more}
        self.files(f"sys/devices/{folder}", words)
        self.link(f"sys/bus/pci/devices/{address}", f"sys/devices/{folder}")
        return folder

    def driver(self, folder: str, name: str) -> None:
        """Bind the device in a folder of /sys/devices to a driver."""
        (self.root / "sys/bus/pci/drivers" / name).mkdir(parents=True, exist_ok=True)
        self.link(f"sys/devices/{folder}/driver", f"sys/bus/pci/drivers/{name}")

    def rdma(self, below: str, name: str, uverbs: str | None, **more: str) -> str:
        """An RDMA device of the PCI device in the folder `below`; returns the folder of its ports."""
        folder = f"sys/devices/{below}/infiniband/{name}"
        words = {"hca_type": "MT4129", "fw_ver": "28.39.1002", "board_id": "MT_0000000838", **more}
        self.files(folder, {"node_guid": "a088:c203:0010:0020", "node_type": "1: CA", **words})
        self.link(f"{folder}/device", f"sys/devices/{below}")
        self.link(f"sys/class/infiniband/{name}", folder)
        if uverbs is not None:
            verbs = f"sys/devices/{below}/infiniband_verbs/{uverbs}"
            self.files(verbs, {"ibdev": name})
            self.link(f"sys/class/infiniband_verbs/{uverbs}", verbs)
        return f"{folder}/ports"

    def port(self, ports: str, number: int, link_layer: str, **more: str) -> str:
        """A healthy 400 Gbit/s port; returns its folder."""
        words = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "lid": "0x0"}
        self.files(f"{ports}/{number}", {**words, "link_layer": link_layer, **more})
        return f"{ports}/{number}"

    def gid(
        self, port: str, index: int, gid: str, kind: str | None = None, netdev: str | None = None
    ) -> None:
        """An entry of a GID table; without kind and netdev it is of another network namespace."""
        self.files(f"{port}/gids", {str(index): gid})
        for folder, text in (("types", kind), ("ndevs", netdev)):
            (self.root / port / "gid_attrs" / folder).mkdir(parents=True, exist_ok=True)
            if text is not None:
                self.files(f"{port}/gid_attrs/{folder}", {str(index): text})

    def interface(self, name: str, index: int, below: str = "virtual", **more: str) -> str:
        """An Ethernet interface that is up; with `below`, one of the PCI device in that folder."""
        folder = f"sys/devices/{below}/net/{name}"
        words = {"type": "1", "mtu": "9000", "operstate": "up", "flags": "0x1003", "ifindex": str(index)}
        uevent = f"INTERFACE={name}\nIFINDEX={index}"
        self.files(folder, {**words, "uevent": uevent, **more})
        if below != "virtual":
            self.link(f"{folder}/device", f"sys/devices/{below}")
        self.link(f"sys/class/net/{name}", folder)
        return folder


def switch(tree: Tree) -> tuple[str, str]:
    """A root port with a switch below it; returns the folders of its two downstream ports."""
    tree.pci("pci0000:15", ROOT_PORT, "0x060400")
    tree.pci(f"pci0000:15/{ROOT_PORT}", "0000:16:00.0", "0x060400")
    return tree.pci(SWITCH, "0000:17:00.0", "0x060400"), tree.pci(SWITCH, "0000:17:02.0", "0x060400")


def gpu(tree: Tree, below: str, address: str = GPU) -> str:
    """An H100 at full speed."""
    folder = tree.pci(
        below, address, "0x030200", vendor="0x10de", device="0x2330",
        current_link_speed="32.0 GT/s PCIe", current_link_width="16",
        max_link_speed="32.0 GT/s PCIe", max_link_width="16",
    )  # fmt: skip
    tree.driver(folder, "nvidia")
    return folder


def roce_machine(root: Path) -> Tree:
    """One GPU and one RoCE HCA below a switch; the HCA's interface has a VLAN; nvidia_peermem is loaded."""
    tree = Tree(root)
    hca_port, gpu_port = switch(tree)
    gpu(tree, gpu_port)
    hca = tree.pci(hca_port, HCA, "0x020700", current_link_speed="16.0 GT/s PCIe", current_link_width="8")
    tree.driver(hca, "mlx5_core")
    port = tree.port(tree.rdma(hca, "mlx5_0", "uverbs0"), 1, "Ethernet")
    for index, (gid, kind) in enumerate(
        [(LINK_LOCAL, "IB/RoCE v1"), (LINK_LOCAL, "RoCE v2"), (IPV4, "IB/RoCE v1"), (IPV4, "RoCE v2")]
    ):
        tree.gid(port, index, gid, kind, "ens24np0")
    tree.gid(port, 4, NO_GID)
    below = tree.interface("ens24np0", 3, hca, speed="400000")
    vlan = tree.interface("ens24np0.100", 7, uevent="DEVTYPE=vlan\nINTERFACE=ens24np0.100", speed="400000")
    tree.link(f"{vlan}/lower_ens24np0", below)
    tree.interface("lo", 1, type="772", mtu="65536", operstate="unknown", flags="0x9", uevent="INTERFACE=lo")
    tree.files("sys/module/nvidia_peermem", {"version": "550.54.15"})
    tree.files("proc", {"modules": "nvidia 54321 2 nvidia_peermem, Live 0x0\nmlx5_core 1 0 - Live 0x0"})
    tree.files("dev/infiniband", {"uverbs0": b"", "rdma_cm": b""})
    return tree
