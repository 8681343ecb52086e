"""One measurement of one environment by processes of its own, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import Watched
from ncclcheck.logs.used import of_processes
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.trials import CallChoice
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing

MOST_SETS = 2000  # that a node takes part in: 18 environments in 40 rounds, and some confirmations
_USES = ("transports", "network", "interface", "RDMA devices", "channels", "algorithms")


class TrialSet(Struct, frozen=True):
    """What to measure: on which network and environment, under which name, and what shows each partial result."""

    network: BenchNetwork
    plan: BenchPlan
    name: str = "bench"
    keep: Callable[[BenchResult], None] = lambda _: None

    @property
    def is_trial(self) -> bool:
        """Return whether it is one of many: then its ranks measure the plan, and nothing else."""
        return self.name != "bench"

    def order(self, order: BenchOrder) -> BenchOrder:
        """Return the order of a benchmark as that of this set."""
        return replace(order, name=self.name, brief=self.is_trial)

    def watched(self, watched: Watched) -> Watched:
        """Return what node 0 watches: the points of a trial are shown with its round."""
        return replace(watched, say=_nothing, show=lambda _: None) if self.is_trial else watched

    def tell(self, say: Callable[[str], None], text: str) -> None:
        """Say what is measured, once and not for each of many sets."""
        if not self.is_trial:
            say(text)


def _nothing(_: str) -> None:
    """Say nothing."""


class Seen(Struct, frozen=True):
    """What a set has shown: the times of its points, or why it has none.

    `wrong`: it measured, and the data was wrong. `late`: the time of the run was over, which is nobody's fault.
    `has_begun`: its processes were started.
    """

    times_us: tuple[float, ...] = ()
    failure: str = ""
    wrong: bool = False
    late: bool = False
    has_begun: bool = True
    hosts: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    choices: tuple[CallChoice, ...] = ()


def with_settings(network: BenchNetwork, settings: Mapping[str, str]) -> BenchNetwork:
    """Return the network with these settings on every node, on top of what it sets."""
    environment_of = {host: {**network.environment_of.get(host, {}), **settings} for host in network.ranks_of}
    # Where the arm chooses the interface, the addresses bound before are no longer those of the ranks.
    is_bound = not any(name.endswith("_SOCKET_IFNAME") for name in settings)
    return replace(network, environment_of=environment_of, binding=network.binding if is_bound else {})


def seen(network: BenchNetwork, result: Fact[BenchResult]) -> Seen:
    """Return what a set has shown."""
    if isinstance(result, Missing):
        why = result.detail or result.missing
        return Seen(failure=why, late=result.missing == "timeout", has_begun=False)
    failures = result.failures
    if failures:
        first = failures[0]
        more = f" (and {len(failures) - 1} more ranks)" if len(failures) > 1 else ""
        return Seen(
            failure=f"rank {first.rank} on {first.host}{more}: {first.state} in {first.where} after "
            f"{first.waited_s:.0f} s: {first.detail}",
            hosts=tuple(dict.fromkeys(failure.host for failure in failures)),
        )
    absent = len(result.plan.ops) * len(result.plan.sizes_bytes) - len(result.points)
    if absent > 0:
        return Seen(failure=result.unfinished or "it was not finished", late=result.refused < absent)
    processes = [
        process for log in result.logs if not isinstance(log.processes, Missing) for process in log.processes
    ]
    rows = [row for row in of_processes(processes) if row.what in _USES]
    uses = tuple(f"{row.what} {row.value}" for row in rows) or _bound(network)
    wrong = [point for point in result.points if point.wrong]
    return Seen(
        times_us=tuple(point.time_us.p50 for point in result.points),
        failure=f"{wrong[0].op} of {wrong[0].size_bytes} bytes gave {wrong[0].wrong} wrong elements"
        if wrong
        else "",
        wrong=bool(wrong),
        hosts=tuple(dict.fromkeys(time.host for time in wrong[0].ranks if time.rank in wrong[0].wrong_ranks))
        if wrong
        else (),
        uses=uses,
        choices=_choices(processes, result),
    )


def _choices(processes: Sequence[Process], result: BenchResult) -> tuple[CallChoice, ...]:
    """Return what the log of rank 0 says of the calls of the plan; it counts the bytes of one rank."""
    found: dict[CallChoice, None] = {}
    for op in result.plan.ops:
        ranks = result.world_size if op in ("all_gather", "reduce_scatter") else 1
        for call in (call for process in processes for call in process.calls):
            if call.op == op.replace("_", "").lower() and call.size_bytes * ranks in result.plan.sizes_bytes:
                size = call.size_bytes * ranks
                found[CallChoice(op, size, call.algorithm, call.protocol, call.channels)] = None
    return tuple(found)


def _bound(network: BenchNetwork) -> tuple[str, ...]:
    """Return the interfaces that Gloo is bound to: it uses no other, and fails where it cannot be bound."""
    names = {
        environment.get("GLOO_SOCKET_IFNAME") or "its own choice"
        for environment in network.environment_of.values()
    }
    return (f"interface {', '.join(sorted(names))}",) if network.backend == "gloo" else ()
