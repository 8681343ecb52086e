"""NC807 bench-transport-fallback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.bench._inside_hosts import OWN_LOG, all_processes, inside_hosts
from ncclcheck.checks.bench._links import processes_of
from ncclcheck.checks.hosts import named
from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.rdma_ports import Surveyed, surveyed
from ncclcheck.checks.registry import Answer, check
from ncclcheck.launch.launcher_registry import innermost_first
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl import network
from ncclcheck.nccl.explanation import network_choice
from ncclcheck.nccl.rdma import hca


@check("NC807", "bench-transport-fallback", "The benchmark used the fastest available transport")
def bench_transport_fallback(snapshot: Snapshot) -> Iterator[Answer]:
    """NCCL used RDMA where available, and the fastest path inside a node, in one job of all ranks.

    Gloo always uses TCP: for Gloo the check only judges that all ranks are one job.

    ## Why it matters
    NCCL falls back without an error: to TCP sockets where it cannot open an RDMA device (from 25 to 5 GB/s, or 36 to
    3), and to the network between the GPUs of one host. A launcher without the right MPI or PMI turns one job into N
    jobs of one rank each, which only measure memory, at rates that no network reaches.

    ## How to fix
    Sockets: the message names the RDMA ports, and `ncclcheck predict` says why NCCL does not use them. One host:
    unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_HOSTID, give containers of one host the same /dev/shm and
    namespaces. Between GPUs without NVLink, NCCL itself prefers network cards that are near both where it counts on
    more from them than from the path between the GPUs: that is reported, and is not a fault. N jobs: start with the
    launcher's own support (srun --mpi=pmix, mpirun of the same MPI), or with torchrun.

    ## Source
    The run's own log (NCCL_DEBUG=INFO, in a file in memory): `Using network`, `NET/IB : Using`, `Channel ... via`, as
    NCCL 2.18 to 2.32 write them; ncclTopoCheckNet in NCCL's graph/paths.cc; the RDMA ports in /sys/class/infiniband;
    the launcher's variables.
    """
    bench = bench_of(snapshot)
    if bench is not None and bench.started:
        yield from _many_small_jobs(snapshot, bench)
        if bench.backend == "nccl":
            yield from _sockets(snapshot, bench)
            yield from inside_hosts(snapshot, bench)
            yield from _without_transport(snapshot, bench)
    yield from not_measured(snapshot, points=False)


def _sockets(snapshot: Snapshot, bench: BenchResult) -> Iterator[Finding]:
    """RDMA is there, and sockets were used, on all nodes or on some."""
    places = {surveyed_node.host: surveyed_node for surveyed_node in surveyed(snapshot)}
    over_sockets, over_rdma = [], []
    for node in snapshot.nodes:
        used = _network(processes_of(bench, node.host))
        if used == network.SOCKET:
            over_sockets.append(node)
        elif used:
            over_rdma.append((node.host, used))
    if bench.nodes < 2 and not _any_net_link(bench):  # noqa: PLR2004 (nothing went between nodes)
        return
    for node in over_sockets:
        place = places.get(node.host)
        ports = _usable(place)
        if place is not None and ports:
            yield _fallback(node, place, ports, [host for host, _ in over_rdma])
        elif over_rdma:
            yield _mixed(node, over_rdma)


def _network(processes: Sequence[Process]) -> str:
    return next((process.network for process in processes if process.network), "")


def _usable(place: Surveyed | None) -> tuple[str, ...]:
    """The RDMA ports that are up and whose device can be opened, whatever the job's environment says of them."""
    if place is None:
        return ()
    return tuple(
        hca.name_of(port)
        for port in place.rdma.ports
        if port.state == "ACTIVE" and not network.is_closed(port, place.rdma)
    )


def _fallback(node: Node, place: Surveyed, ports: tuple[str, ...], others: Sequence[str]) -> Finding:
    choice = network_choice(node.facts)
    reason = "" if isinstance(choice, Missing) else choice.network_reason
    expected = network.IB if isinstance(choice, Missing) else choice.network or network.IB
    wanted_off = place.is_switched_off and not others
    settings = " and ".join(
        f"{name}={place.environment[name]}"
        for name in ("NCCL_IB_DISABLE", "NCCL_NET")
        if name in place.environment
    )
    why = f"since {settings}" if place.is_switched_off else f"ncclcheck's model says {expected} ({reason})"
    return Finding(
        "warning" if wanted_off else "error",
        f"{node.host} used TCP sockets although its RDMA ports {listed(ports)} are up, {why}: "
        "the result does not show what this network can do"
        + (f"; {named(others)} used another network" if others else ""),
        (node.host,),
        (
            Evidence((node.host,), "network that NCCL used", network.SOCKET, "IB, or a plug-in", OWN_LOG),
            Evidence((node.host,), listed(ports), "ACTIVE", "used", "/sys/class/infiniband"),
        ),
        (
            Fix(f"unset {settings.replace(' and ', ', ')}")
            if place.is_switched_off
            else Fix(
                "find out why NCCL does not use them: libibverbs in the image, device files, "
                "permissions, memlock",
                ("ncclcheck predict", "ibv_devices", "ulimit -l"),
            ),
        ),
    )


def _mixed(node: Node, others: Sequence[tuple[str, str]]) -> Finding:
    hosts, used = [host for host, _ in others], others[0][1]
    return Finding(
        "error",
        f"{node.host} used TCP sockets and {named(hosts)} {used}: NCCL cannot connect the two, or "
        "uses the slower network",
        (node.host,),
        (Evidence((node.host,), "network that NCCL used", network.SOCKET, used, OWN_LOG),),
        (Fix("install the same network plug-in and RDMA libraries on all nodes", ("ncclcheck predict",)),),
    )


def _any_net_link(bench: BenchResult) -> bool:
    return any(link.via.startswith("NET/") for _, process in all_processes(bench) for link in process.links)


def _many_small_jobs(snapshot: Snapshot, bench: BenchResult) -> Iterator[Finding]:
    """The launcher started N processes of one job, and each of them measures alone."""
    alone = [
        (host, process)
        for host, process in all_processes(bench)
        if process.ranks is not None and process.ranks < bench.world_size
    ]
    if alone:
        _, process = alone[0]
        yield _small(
            bench,
            tuple(dict.fromkeys(host for host, _ in alone)),
            process.ranks or 1,
            bench.world_size,
            OWN_LOG,
            "error",
        )
        return
    joined = max(len(snapshot.claims), bench.world_size if len(snapshot.nodes) > 1 else 1, 1)
    for node, environment in snapshot.known("environment"):
        for count in (launcher.task_count for launcher in innermost_first() if launcher.task_count):
            task_count = environment.get(count.variable, "")
            if count.set_in_tasks in environment and task_count.isdigit() and int(task_count) > joined:
                launch = node.facts.launch
                by_hand = (
                    not isinstance(launch, Missing) and launch.source == "flags"
                )  # one node of several, perhaps
                severity: Severity = "warning" if by_hand else "error"
                yield _small(
                    bench, (node.host,), joined, int(task_count), f"{count.variable}={task_count}", severity
                )
                return


def _small(
    bench: BenchResult, hosts: tuple[str, ...], joined: int, tasks: int, source: str, severity: Severity
) -> Finding:
    return Finding(
        severity,
        f"{tasks} processes were started as one job, but this benchmark is a job of its own with {joined} of them, "
        f"{bench.world_size} ranks in all: its traffic never left {named(hosts)}",
        hosts,
        (Evidence(hosts, "processes of the job", str(joined), str(tasks), source),),
        (
            Fix(
                "leave out --nnodes and --node-rank under a launcher, start with its own process "
                "management, or use torchrun",
                (
                    "srun --mpi=pmix ncclcheck bench",
                    "torchrun --nnodes N --nproc-per-node 1 -m ncclcheck bench",
                ),
            ),
        ),
    )


def _without_transport(snapshot: Snapshot, bench: BenchResult) -> Iterator[NotKnown]:
    """The nodes whose log does not tell the transport."""
    processes_by_host = {log.host: log.processes for log in bench.logs}
    for node in snapshot.nodes:
        processes = processes_by_host.get(node.host, Missing("absent", "its ranks sent no NCCL log"))
        if isinstance(processes, Missing):
            yield NotKnown(f"the transport that was used: {processes}", (node.host,))
        elif not _network(processes) and not any(process.links for process in processes):
            yield NotKnown("the NCCL log of its ranks does not name the transport", (node.host,))
