"""The plan of a benchmark, from what the user asked for and what is known of the nodes."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.bench.soak.soak_plan import soak_plan
from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.measure.mesh.job_mesh import meshes
from ncclcheck.measure.mesh.mesh_plan import mesh_plan
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

_GROUPS_SHARE = 2 / 3  # of the budget, where there are groups


def planned(
    request: BenchRequest, network: BenchNetwork, snapshot: Snapshot, left_s: float
) -> Fact[BenchPlan]:
    """Return the plan; Missing where the parallel groups are not known, or do not fit the ranks."""
    plan = BenchPlan(
        backend=network.backend,
        ops=request.ops,
        sizes_bytes=request.sizes_bytes,
        dtype=request.dtype,
        warmup=request.warmup,
        iters=request.iters,
        budget_s=min(request.budget_s, max(1.0, left_s / 2)),
        verify=request.verify,
        cuda_graph=request.cuda_graph,
    )
    if request.soak is not None:
        return soak_plan(request.soak, plan, network)
    if request.mesh is None:
        return plan
    orders = {order_of(mesh): host for host, mesh in meshes(snapshot).items()}
    if len(orders) > 1:
        order_text = ", ".join(f"{order} on {host}" for order, host in sorted(orders.items()))
        return Missing("unsupported", f"the parallel groups differ between nodes: {order_text}")
    of_groups_s = plan.budget_s * _GROUPS_SHARE
    found = mesh_plan(request, request.mesh, sum(network.ranks_of.values()), of_groups_s)
    if isinstance(found, str):
        return Missing("unsupported", found)
    return replace(plan, budget_s=plan.budget_s - of_groups_s, mesh=found)
