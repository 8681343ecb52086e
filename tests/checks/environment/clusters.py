"""Clusters whose nodes run with a given environment, NCCL version and config file."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.environment._settings import EnvironmentPlace, places
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu, NcclChoice, NcclConfigFile
from ncclcheck.model.hardware import Rdma, RdmaPort
from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import cluster, everywhere, with_environment
from tests.fact_builders import answer, software

NOT_TOLD = Missing("absent", "not told")


def running(
    environment: dict[str, str],
    nccl: str | None = "2.27.5",
    *files: NcclConfigFile,
    torch: str = "2.9.0",
    nodes: int = 2,
) -> Snapshot:
    """A healthy cluster whose nodes have these variables besides their own. `nccl` None: its version is not known."""
    snapshot = cluster(nodes)
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, **environment)
    asked = Missing("absent", "no library") if nccl is None else answer("10.0.0.1", "eth0", nccl)
    said = NOT_TOLD if nccl is None else nccl
    return everywhere(
        snapshot,
        nccl=NcclChoice(asked=asked, config_files=files, home_set=True),
        software=software(torch=torch, torch_nccl=said, nccl=said),
    )


def with_further_rank(snapshot: Snapshot, rank: int, **differs: str | None) -> Snapshot:
    """The snapshot with one more rank on node02, whose environment differs."""
    place = RankPlace(rank, "node02", 1, 1, 4, differs)
    return replace(snapshot, ranks=(*snapshot.ranks, place))


def place_of(environment: dict[str, str], nccl: str | None = "2.27.5") -> EnvironmentPlace:
    """The first place of such a cluster."""
    return next(places(running(environment, nccl)))


def with_rdma(
    snapshot: Snapshot, *devices: str, link_layer: str = "InfiniBand", state: str = "ACTIVE"
) -> Snapshot:
    """The snapshot in which every node has these RDMA devices; none given: it has none."""
    ports = tuple(_port(device, link_layer, state) for device in devices)
    return everywhere(snapshot, rdma=Rdma(ports, (), ()))


def _port(device: str, link_layer: str, state: str) -> RdmaPort:
    return RdmaPort(
        device=device,
        port=1,
        link_layer=link_layer,
        state=state,
        phys_state="LinkUp",
        rate_gbps=400.0,
        width="4X",
        speed="NDR",
        lid=1,
        active_mtu=4096,
        pci="0000:17:00.0",
        numa_node=0,
        firmware=NOT_TOLD,
        board_id=NOT_TOLD,
        hca_type=NOT_TOLD,
        node_guid=NOT_TOLD,
        driver="mlx5_core",
        uverbs="uverbs0",
        gids=(),
    )


def with_gpus(snapshot: Snapshot, count: int, name: str = "NVIDIA H100 80GB HBM3") -> Snapshot:
    """The snapshot in which every node has so many GPUs of that name."""
    return everywhere(
        snapshot,
        gpus=tuple(
            Gpu(index, name, f"GPU-{index}", f"0000:{index:02x}:00.0", 80 << 30) for index in range(count)
        ),
    )
