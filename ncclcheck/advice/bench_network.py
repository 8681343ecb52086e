"""What a benchmark runs on: the backend, how many ranks per node, and the interface Gloo is bound to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.compared import AsIsAndAdvised, as_is_and_advised
from ncclcheck.advice.gloo import gloo_binding
from ncclcheck.advice.interface import decide
from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import Reach, read_reach
from ncclcheck.advice.trials import may_be_tried
from ncclcheck.model.bench import Backend, Comparison
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest, Binding, Changes
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.distorting import distorting
from ncclcheck.nccl.gpus.job_gpus import SHARES_GPUS, exclusive_gpus, job_gpus, shares_gpus
from ncclcheck.nccl.prediction import chosen_interface, node_choice


class BenchWish(Struct, frozen=True):
    """What the user asked for that decides on the network: the request, and `--nproc-per-node`."""

    request: BenchRequest
    nproc_per_node: int | None = None


def bench_network(wish: BenchWish, snapshot: Snapshot) -> Fact[BenchNetwork]:
    """Return the network to measure on; Missing, with the reason, where there is none or the backend cannot run.

    NCCL runs without the job's settings that distort times, but under `--as-is`.
    """
    found = _chosen_network(wish, snapshot)
    if isinstance(found, Missing):
        return found
    if found.backend != "gloo" and wish.request.under != "as-is":
        found = _without_distorting(found, snapshot)
    return may_be_tried(wish.request.tries, found, snapshot) or found


def _without_distorting(found: BenchNetwork, snapshot: Snapshot) -> BenchNetwork:
    environment_of = dict(found.environment_of)
    for node in snapshot.nodes:
        if not isinstance(node.facts.environment, Missing) and (names := distorting(node.facts.environment)):
            environment_of[node.host] = {**environment_of.get(node.host, {}), **dict.fromkeys(names)}
    return replace(found, environment_of=environment_of)


def _chosen_network(wish: BenchWish, snapshot: Snapshot) -> Fact[BenchNetwork]:
    backend = bench_backend(wish, snapshot)
    if isinstance(backend, Missing):
        return backend
    ranks_of = {node.host: ranks_on(wish, snapshot, node, backend) for node in snapshot.nodes}
    if len(snapshot.nodes) == 1:
        host = snapshot.nodes[0].host
        environment: dict[str, str | None] = {"GLOO_SOCKET_IFNAME": "lo"} if backend == "gloo" else {}
        binding = {host: ("lo", "127.0.0.1")} if backend == "gloo" else {}
        return BenchNetwork(backend, ranks_of, binding, {host: environment}, "one node")
    under = wish.request.under
    if under == "as-is":
        return as_is_network(snapshot, backend, ranks_of)
    why = "the advised settings" if under == "advised" else _why_advised(snapshot.comparison)
    two = as_is_and_advised(snapshot) if why else Missing("absent", "the advised settings were not requested")
    if not isinstance(two, Missing):
        return bound_network(snapshot, two.advised, two.changes, backend, ranks_of, why)
    if under == "advised":
        found = as_is_network(snapshot, backend, ranks_of)
        return found if isinstance(found, Missing) else replace(found, proof=f"as it is: {NOTHING_ADVISED}")
    return _proven_network(snapshot, backend, ranks_of)


def no_group(snapshot: Snapshot) -> Missing | None:
    """Return why no group of ranks can be formed at all; None where one may be."""
    if snapshot.silent:
        absent = ", ".join(sorted({silent.host for silent in snapshot.silent}))
        return Missing("unsupported", f"a benchmark needs all nodes; silent: {absent}")
    ranks = [claim.node_rank for claim in snapshot.claims if claim.is_agent]
    if len(set(ranks)) != len(ranks):
        return Missing("unsupported", "node ranks clash, so no group can be formed")
    # Nodes that joined over ssh or a shared folder may be unable to connect as the ranks must.
    master_paths = ((node, path) for node, path in snapshot.known("master") if node.node_rank != 0)
    apart = sorted(node.host for node, path in master_paths if path.outcome != "answered")
    if apart:
        who = ", ".join(apart)
        return Missing(
            "unsupported", f"the ranks meet by TCP at the master address, which {who} cannot reach"
        )
    return None


def as_is_network(snapshot: Snapshot, backend: Backend, ranks_of: dict[str, int]) -> Fact[BenchNetwork]:
    """Return what the job would get: NCCL chooses for itself, and Gloo is bound to the interface NCCL would choose.

    Also where that cannot work. Missing where the choice is not known.
    """
    places: Binding = {}
    fault: dict[str, str] = {}
    for node in snapshot.nodes:
        choice = node_choice(node.facts)
        if isinstance(choice, Missing):
            if backend == "nccl":
                continue
            return Missing(choice.missing, f"NCCL's choice on {node.host} is not known: {choice.detail}")
        if choice.interface is None or choice.address is None:
            fault[node.host] = f"NCCL finds no interface: {choice.reason}"
        else:
            places[node.host] = (choice.interface, choice.address)
    if backend == "nccl":  # what fails, fails by itself, in its own words
        return BenchNetwork(
            backend, ranks_of, places if len(places) == len(snapshot.nodes) else {}, {}, AS_IS
        )
    if fault:
        return BenchNetwork(backend, ranks_of, {}, {}, AS_IS, fault)
    return bound_network(snapshot, places, {}, backend, ranks_of, AS_IS)


def bound_network(
    snapshot: Snapshot,
    places: Binding,
    changes: Changes,
    backend: Backend,
    ranks_of: dict[str, int],
    proof: str,
) -> Fact[BenchNetwork]:
    """Return the job's environment with `changes`; Gloo is bound to `places`. Missing where it cannot be."""
    if backend == "nccl":
        return BenchNetwork(backend, ranks_of, places, changes, proof)
    if _mixes_families(places):
        return Missing(
            "unsupported",
            "NCCL uses IPv4 on some nodes and IPv6 on others, which Gloo, that runs here, cannot connect",
        )
    environment_of: Changes = {}
    for node in snapshot.nodes:
        place = places.get(node.host)
        if place is None:
            return Missing("absent", f"it is not known what to bind Gloo to on {node.host}")
        if not _gloo_binds(node, place):
            name, address = place
            return Missing("unsupported", f"Gloo cannot be bound to {address} of {name} on {node.host}")
        environment_of[node.host] = {**changes.get(node.host, {}), "GLOO_SOCKET_IFNAME": place[0]}
    return BenchNetwork(backend, ranks_of, places, environment_of, proof)


def compared_networks(
    wish: BenchWish, snapshot: Snapshot, two: AsIsAndAdvised
) -> Fact[tuple[BenchNetwork, BenchNetwork]]:
    """Return what both sides of a comparison run on; Missing where the backend at hand cannot show a difference.

    With Gloo one rank per node: it is the network between them that is compared.
    """
    backend = bench_backend(wish, snapshot)
    if isinstance(backend, Missing):
        return backend
    exclusive = [node.host for node in snapshot.nodes if backend == "nccl" and exclusive_gpus(node.facts)]
    if exclusive:
        return Missing(
            "unsupported",
            f"GPUs of {', '.join(exclusive)} take one process only (compute mode), and a comparison needs two sets "
            "of workers on them",
        )
    if backend == "nccl" and two.chooser == "Gloo":
        return Missing("unsupported", "what is advised is for Gloo alone, and the benchmark runs NCCL")
    if backend == "gloo" and two.as_is == two.advised:
        return Missing(
            "unsupported",
            "what is advised does not change the interface, and Gloo, which runs here, uses no more",
        )
    ranks_of = {
        node.host: ranks_on(wish, snapshot, node, backend) if backend == "nccl" else 1
        for node in snapshot.nodes
    }
    if two.chooser == "Gloo":
        as_is: Fact[BenchNetwork] = BenchNetwork(
            backend, ranks_of, two.as_is, {}, "as it is, Gloo's own choice"
        )
    else:
        as_is = as_is_network(snapshot, backend, ranks_of)
    advised = bound_network(snapshot, two.advised, two.changes, backend, ranks_of, "the advised settings")
    if isinstance(as_is, Missing):
        return as_is
    return advised if isinstance(advised, Missing) else (as_is, advised)


def _why_advised(comparison: Fact[Comparison]) -> str:
    """Return why the advised settings are the ones to measure under; empty where nothing shows that they are."""
    if isinstance(comparison, Missing):
        return ""
    if comparison.verdict == "faster":
        return f"the advised settings, measured {comparison.speedup:.2g} times as fast as NCCL's own choice"
    return "the advised settings, since it failed as it is" if comparison.verdict == "as-is failed" else ""


def _proven_network(snapshot: Snapshot, backend: Backend, ranks_of: dict[str, int]) -> Fact[BenchNetwork]:
    found = _binding(snapshot, backend)
    if isinstance(found, Missing):
        return found
    binding, proof = found
    name = "GLOO_SOCKET_IFNAME" if backend == "gloo" else "NCCL_SOCKET_IFNAME"
    exact = "" if backend == "gloo" else "="
    environment_of: Changes = {host: {name: exact + interface} for host, (interface, _) in binding.items()}
    if backend == "nccl" and proof == _CHOSEN:
        environment_of = {}  # NCCL takes it by itself
    return BenchNetwork(backend, ranks_of, binding, environment_of, proof)


def bench_backend(wish: BenchWish, snapshot: Snapshot) -> Fact[Backend]:
    """Return what runs the collectives; Missing where the one that was asked for cannot.

    Gloo stands in for NCCL only where no node has a GPU for the job: figures of Gloo beside GPUs mislead.
    """
    if wish.request.backend == "gloo":
        return "gloo"
    gpus_of = {node.host: job_gpus(node.facts) for node in snapshot.nodes}
    lacking = _lacking(snapshot, gpus_of)
    if not lacking:
        return _too_many_ranks(wish, snapshot) or "nccl"
    asked = _asks_for_nccl(wish)
    if asked:
        return Missing("unsupported", f"{asked} cannot run: {'; '.join(lacking)}")
    if all(count == 0 for count in gpus_of.values()):
        return "gloo"
    why = "; ".join(lacking)
    return Missing("unsupported", f"NCCL cannot run: {why}; --backend gloo measures the network without GPUs")


def _too_many_ranks(wish: BenchWish, snapshot: Snapshot) -> Missing | None:
    """Return why the agent of a node cannot start its ranks: they are more than the GPUs that it sees.

    Processes of a launcher that are as many as the ranks each have GPUs of their own, unless they all see several GPUs
    and CUDA_VISIBLE_DEVICES is not set, as with `mpirun -npernode 8` on a node with four. NCCL tells two ranks on one
    GPU apart since 2.30.3, if NCCL_MULTI_RANK_GPU_ENABLE is set (`src/init.cc`); it rejects them else.
    """
    for node in snapshot.nodes:
        facts, gpus = node.facts, job_gpus(node.facts)
        ranks = ranks_on(wish, snapshot, node, "nccl")
        launched = 1 if isinstance(facts.launch, Missing) else facts.launch.local_world_size
        environment = {} if isinstance(facts.environment, Missing) else facts.environment
        sees_all = not isinstance(gpus, Missing) and gpus > 1 and "CUDA_VISIBLE_DEVICES" not in environment
        if (
            not isinstance(gpus, Missing)
            and ranks > gpus
            and (ranks != launched or sees_all)
            and not shares_gpus(facts)
        ):
            return Missing(
                "unsupported",
                f"{ranks} ranks on {node.host}, which has {plural(gpus, 'GPU')} for them: NCCL takes "
                f"one rank per GPU ({SHARES_GPUS}=1 allows more, from 2.30.3 on)",
            )
    return None


def _lacking(snapshot: Snapshot, gpus_of: Mapping[str, Fact[int]]) -> list[str]:
    """Return what NCCL needs and a node lacks, or what is not known of it; empty where nothing is lacking."""
    without_gpu = [host for host, count in gpus_of.items() if count == 0]
    without_nccl: list[str] = []
    unknown = [
        f"whether {host} has GPUs is not known: {count}"
        for host, count in gpus_of.items()
        if isinstance(count, Missing)
    ]
    for node in snapshot.nodes:
        software = node.facts.software
        nccl = software if isinstance(software, Missing) else software.torch_nccl
        if not isinstance(nccl, Missing) or gpus_of[node.host] == 0:
            continue
        if nccl.missing == "absent":
            without_nccl.append(node.host)
        else:
            unknown.append(f"whether torch on {node.host} has NCCL is not known: {nccl}")
    lacking = [f"no GPU on {', '.join(without_gpu)}"] if without_gpu else []
    lacking += [f"no NCCL in torch on {', '.join(without_nccl)}"] if without_nccl else []
    return [*lacking, *unknown]


def _asks_for_nccl(wish: BenchWish) -> str:
    """Return the option that cannot be met by another backend; empty where none is given."""
    if wish.request.backend == "nccl":
        return "--backend nccl"
    return "--cuda-graph" if wish.request.cuda_graph else ""


def ranks_on(wish: BenchWish, snapshot: Snapshot, node: Node, backend: Backend) -> int:
    """Return how many ranks the job has on a node, as far as somebody said so.

    Several processes of a launcher there say it too (mpirun -npernode 8); one alone is the usual way to start a check.
    """
    launch = node.facts.launch
    ranks = wish.nproc_per_node
    if ranks is None and not isinstance(launch, Missing):
        started = launch.local_world_size if launch.local_world_size > 1 else None
        ranks = launch.nproc_per_node or started
    if ranks is not None:
        return ranks
    if backend == "nccl":
        count = job_gpus(node.facts)
        return 0 if isinstance(count, Missing) else count
    return 2 if len(snapshot.nodes) == 1 else 1


AS_IS = "as it is, NCCL's own choice"
NOTHING_ADVISED = "nothing is advised"
_CHOSEN = "NCCL's own choice, proven by connections in both directions"
_UNPROVEN = "NCCL's own choice, not probed (--no-preflight)"


def _binding(snapshot: Snapshot, backend: Backend) -> Fact[tuple[Binding, str]]:
    chosen: Binding = {}
    for node in snapshot.nodes:
        choice = chosen_interface(node.facts)
        if not isinstance(choice, Missing):
            chosen[node.host] = choice
    complete = len(chosen) == len(snapshot.nodes)
    if isinstance(snapshot.probes, Missing):
        return (chosen, _UNPROVEN) if complete else Missing("absent", "no interface is known to use")
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        return reach
    if complete and _carries(snapshot, backend, reach, chosen):
        return chosen, _CHOSEN
    for binding, proof in _alternatives(snapshot, reach):
        if _carries(snapshot, backend, reach, binding):
            return binding, proof
    return Missing(
        "unsupported", "there is no interface on which all nodes can connect, so nothing can be measured"
    )


def _alternatives(snapshot: Snapshot, reach: Reach) -> Iterator[tuple[Binding, str]]:
    """Yield the advised networks first, so that what is measured is what the advice is about; then any other."""
    advised = decide(snapshot)
    for proposal in advised.proposals:
        yield dict(proposal.places), "not NCCL's own choice, but the advised one"
    if advised.gloo.network is not None:
        yield advised.gloo.network.places, "not NCCL's own choice, but the one advised for Gloo"
    for network in find_networks(snapshot, reach):
        yield network.places, "not NCCL's choice, but all nodes can connect there"


def _carries(snapshot: Snapshot, backend: Backend, reach: Reach, binding: Binding) -> bool:
    """Return whether all nodes reach each other there, with large messages too, and the backend can be bound to it."""
    if reach.failure(binding) is not None or reach.stall(binding) is not None:
        return False
    if backend == "nccl":
        return True
    binds = all(_gloo_binds(node, binding[node.host]) for node in snapshot.nodes)
    return binds and not _mixes_families(binding)


def _mixes_families(places: Binding) -> bool:
    return len({":" in address for _, address in places.values()}) > 1


def _gloo_binds(node: Node, place: tuple[str, str]) -> bool:
    found = gloo_binding(node.facts, place[0])
    return isinstance(found, Missing) or found.places == (place,)
