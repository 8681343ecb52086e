"""In random RDMA clusters the settings lead every node to one network, and none of them is idle."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from ncclcheck.advice.leftover_settings import common_network
from ncclcheck.advice.proof import settle
from ncclcheck.advice.rule import Changes, predictions
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.network import SOCKET
from tests.advice.clusters import configured, with_rdma
from tests.builders import everywhere, with_environment, with_facts
from tests.fact_builders import some
from tests.nccl.hardware import LINK_LOCAL, ROCE_GIDS, gid, port, rdma

DEVICES = ("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_11", "mlx5_2")
OTHER_GIDS = (gid(0, LINK_LOCAL, "v1"), gid(1, "10.0.0.1", "v1"), gid(2, "10.0.0.1"))
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"rate_gbps": 100.0, "board_id": "MT_0000000359"},
    {"rate_gbps": 200.0},
    {"rate_gbps": Missing("error", "-1")},
)
VALUES = {
    "NCCL_IB_DISABLE": ("1", "0", "true", ""),
    "NCCL_NET": ("Socket", "IB", "FasTrak"),
    "NCCL_IB_HCA": ("mlx5", "mlx5_1", "=mlx5_1,mlx5_10", "^mlx5_1", "hfi1", "mlx5_0:1", ""),
    "NCCL_IB_GID_INDEX": ("0", "1", "2", "3", "9"),
}


@st.composite
def ports_of(draw: st.DrawFn, layer: str) -> tuple[RdmaPort, ...]:
    """Up to five ports, most of them alike."""
    gids = draw(st.sampled_from((ROCE_GIDS, ROCE_GIDS, OTHER_GIDS)))
    found = []
    for name in draw(st.lists(st.sampled_from(DEVICES), max_size=5, unique=True)):
        own = layer if draw(st.integers(0, 7)) else draw(st.sampled_from(("InfiniBand", "Ethernet")))
        kind = draw(st.sampled_from((KINDS[0], KINDS[0], *KINDS)))
        state = "ACTIVE" if draw(st.integers(0, 7)) else "DOWN"
        found.append(port(name, link_layer=own, state=state, gids=gids, **kind))
    return tuple(found)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Two or three nodes with the same ports, or nearly, and left-overs in the environment or in a file."""
    layer = draw(st.sampled_from(("InfiniBand", "Ethernet")))
    version = draw(st.sampled_from(("2.18.3", "2.20.5", "2.21.5", "2.28.9", "2.32.3")))
    chosen = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3))
    environment = {name: draw(st.sampled_from(VALUES[name])) for name in sorted(chosen)}
    snapshot = with_rdma(draw(st.integers(2, 3)), *draw(ports_of(layer)), version=version, **environment)
    if draw(st.integers(0, 3)) == 0:
        snapshot = with_facts(snapshot, "node02", rdma=rdma(*draw(ports_of(layer))))
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted(VALUES)))
        snapshot = with_environment(snapshot, "node02", **{name: draw(st.sampled_from(VALUES[name]))})
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted(VALUES)))
        snapshot = configured(snapshot, "node01", **{name: draw(st.sampled_from(VALUES[name]))})
    return snapshot


def outcome(snapshot: Snapshot, changes: Changes) -> dict[str, Any]:
    """Network and ports with their GIDs, per node."""
    return {
        host: (prediction.fails, prediction.network, prediction.hcas)
        for host, prediction in some(predictions(snapshot, changes)).items()
    }


def of_network(snapshot: Snapshot) -> Changes:
    """What is advised beside sockets and Gloo. Without GPUs, for which threads of sockets would be advised."""
    together: Changes = {node.host: {} for node in snapshot.nodes}
    for part in settle(everywhere(snapshot, gpus=())).parts:
        if part.subject == "network":
            assert (part.proof, "prediction: NCCL src/" in part.evidence) == ("rule", True)
            for host, env in part.env_by_host.items():
                together[host].update(env)
    return together


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_the_settings_lead_to_one_network_and_each_of_them_is_needed(snapshot: Snapshot) -> None:
    changes = of_network(snapshot)
    printed = {(name, value) for env in changes.values() for name, value in env.items()}
    event(", ".join(sorted({name for name, _ in printed})) or "nothing")
    if not printed:
        return
    before, after = some(predictions(snapshot, {})), some(predictions(snapshot, changes))
    assert common_network(after) is not None
    assert common_network(before) in {None, SOCKET, common_network(after)}
    for left_out in printed:
        smaller: Changes = {
            host: {name: value for name, value in env.items() if (name, value) != left_out}
            for host, env in changes.items()
        }
        assert outcome(snapshot, smaller) != outcome(snapshot, changes), left_out


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_applied_settings_leave_nothing_more_to_advise(snapshot: Snapshot) -> None:
    changes = of_network(snapshot)
    for host, env in changes.items():
        snapshot = with_environment(snapshot, host, **env)
    assert not any(of_network(snapshot).values())
