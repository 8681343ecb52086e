"""From a Snapshot, the outcome of its checks and the advice to the Report that every renderer gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

import ncclcheck
from ncclcheck.checks.registry import all_checks, matching
from ncclcheck.measure.mesh.job_mesh import placement
from ncclcheck.model.bench import BenchResult, Comparison
from ncclcheck.model.benchmarks.isolation import PairIsolation
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import SEVERITIES, CheckRun, Finding
from ncclcheck.model.formats.choices import FailOn
from ncclcheck.model.report import (
    SCHEMA_VERSION,
    Advice,
    CheckEntry,
    NcclEntry,
    NodeEntry,
    Report,
    Tool,
    Verdict,
)
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.explanation import explain
from ncclcheck.nccl.prediction import Prediction
from ncclcheck.report.bench_report import bench_report
from ncclcheck.report.soak.soak_not_done import interrupted_on, soak_not_done
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.verdict import verdict

_MOST_LATE = 4
_INCONCLUSIVE = ("undecided", "budget", "twin differs", "as-is failed")  # how trials end that tell nothing


def build_report(
    snapshot: Snapshot,
    runs: Sequence[CheckRun],
    advice: Advice,
    *,
    command: str,
    created: str,
    elapsed_s: float,
    fail_on: FailOn,
    require: Iterable[str],
    interrupted: bool,
    bug: str | None = None,
) -> Report:
    """Build the report. Equal arguments give an equal report; findings come worst first, nodes by node rank.

    `bug` is set when ncclcheck itself failed. Raises UsageError when `require` names no check.
    """
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=this_tool(),
        command=command,
        created=created,
        elapsed_s=round(elapsed_s, 3),
        verdict=_verdict(snapshot, runs, command, fail_on, require, interrupted, bug),
        nodes=_node_entries(snapshot),
        checks=tuple(_check_entry(run) for run in sorted(runs, key=lambda run: run.code)),
        findings=tuple(_worst_first(finding for run in runs for finding in run.findings)),
        probes=() if isinstance(snapshot.probes, Missing) else snapshot.probes,
        nccl=tuple(
            entry
            for node in _by_rank(snapshot)
            if snapshot.of == "nodes"
            if not isinstance(entry := nccl_entry(node.host, explain(node.facts)), Missing)
        ),
        advice=_with_comparison(advice, snapshot.comparison),
        comparison=None if isinstance(snapshot.comparison, Missing) else snapshot.comparison,
        bench=None if isinstance(snapshot.bench, Missing) else bench_report(snapshot, snapshot.bench),
        coverage=snapshot.coverage,
        of=snapshot.of,
        authentication=snapshot.authentication,
        isolation=None if isinstance(snapshot.isolation, Missing) else snapshot.isolation,
        matrix=None if isinstance(snapshot.matrix, Missing) else snapshot.matrix,
        soak=None if isinstance(snapshot.bench, Missing) else snapshot.bench.soak,
        mesh=None if isinstance(placed := placement(snapshot), Missing) else placed,
    )


def this_tool() -> Tool:
    """Return what a report names as its program."""
    return Tool("ncclcheck", ncclcheck.__version__)


def _with_comparison(advice: Advice, comparison: Fact[Comparison]) -> Advice:
    """Return the advice, with a note that says why it was not compared where that was asked for."""
    if not isinstance(comparison, Missing) or comparison.missing == "absent":
        return advice
    note = f"as-is and advised were not compared: {comparison.detail or comparison.missing}"
    return replace(advice, notes=(*advice.notes, note))


def _verdict(
    snapshot: Snapshot,
    runs: Sequence[CheckRun],
    command: str,
    fail_on: FailOn,
    require: Iterable[str],
    interrupted: bool,
    bug: str | None,
) -> Verdict:
    demanded = matching(require) | _demanded(snapshot, runs)
    reported = {node.host for node in snapshot.nodes} if snapshot.silent else set()
    answer = verdict(
        runs,
        silent=[silent.host for silent in snapshot.silent if silent.host not in reported],
        stopped=[silent.host for silent in snapshot.silent if silent.host in reported],
        required=demanded,
        not_done=tuple(_not_done(snapshot, runs, command)),
        fail_on=fail_on,
        interrupted=interrupted,
        bug=bug,
    )
    return replace(answer, fail_on=fail_on, required=tuple(sorted(demanded)))


def _demanded(snapshot: Snapshot, runs: Sequence[CheckRun]) -> frozenset[str]:
    """Return the demanded checks that could not be judged, unless ignored or no benchmark was wanted."""
    demands = snapshot.bench_demands
    slugs = {"gpu-count"} if snapshot.expected_gpus_per_node is not None else set()
    of_bench = {"bench-below-floor"} if demands.floors else set()
    of_bench |= {"bench-below-baseline"} if demands.baseline is not None else set()
    return frozenset(
        run.code
        for run in runs
        if (run.slug in slugs and run.outcome != "ignored")
        or (run.slug in of_bench and run.outcome not in ("ignored", "not_applicable"))
    )


def _not_done(snapshot: Snapshot, runs: Sequence[CheckRun], command: str) -> Iterator[str]:
    if snapshot.store_changed:
        yield "another program writes into the store of this run, so nothing that it brought is certain"
    yield from (still.sentence for still in snapshot.stood_still)
    yield from _not_joined(snapshot)
    unread = [node.host for node in snapshot.nodes if _is_unread(node)]
    if unread:
        yield f"neither the interfaces nor the environment of {fold_hosts(unread)} could be read"
    if snapshot.viewpoint == "one-node" and snapshot.lost_run:
        return  # what was measured is lost with it
    if command in ("bench", "run"):
        yield from _bench_not_done(snapshot.bench)
    if command == "node":
        yield from _late_facts(snapshot, runs)
    if command == "isolate" or not _is_absent(snapshot.isolation):  # bench --isolate
        yield from _isolation_not_done(snapshot)
    if command == "matrix":
        yield from _matrix_not_done(snapshot)
    if command == "soak":
        yield from soak_not_done(snapshot.bench)


def _not_joined(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.lost_run:
        yield snapshot.lost_run
    elif snapshot.viewpoint == "one-node" and snapshot.job_size > 1:
        seen_from = snapshot.nodes[0].host if snapshot.nodes else "this node"
        yield f"{seen_from} did not meet the other nodes"


def _is_unread(node: Node) -> bool:
    """Return True if nothing is known that a network check could judge."""
    return all(isinstance(section, Missing) for section in (node.facts.interfaces, node.facts.environment))


def _bench_not_done(bench: Fact[BenchResult]) -> Iterator[str]:
    if isinstance(bench, Missing):
        yield f"the benchmark did not run: {bench.detail or bench.missing}"
        return
    planned, measured = len(bench.plan.ops) * len(bench.plan.sizes_bytes), len(bench.points)
    if not bench.started:
        yield "the benchmark did not start"
    elif left := interrupted_on(bench):
        yield f"the benchmark was not finished: {left}"
    elif measured < planned and not bench.failures:  # a failure is a finding, and says more
        why = bench.unfinished or "give it a longer --timeout, or fewer --sizes"
        yield f"the benchmark was not finished: {measured} of {planned} points were measured: {why}"
    elif bench.race is not None and bench.race.ended in _INCONCLUSIVE:
        yield f"the settings were not decided: {bench.race.words}"
    elif bench.plan.mesh is not None and bench.mesh is None and not bench.failures:
        yield f"the parallel groups were not measured: {bench.unfinished or 'the time was over'}"


def _late_facts(snapshot: Snapshot, runs: Sequence[CheckRun]) -> Iterator[str]:
    """Name the facts that did not come in time: a node that is checked by a timer is then neither good nor bad.

    With --select or --ignore only those that a check which ran declares.
    """
    ran = {run.code for run in runs if run.outcome != "ignored"}
    read = {name for check in all_checks() if check.code in ran for name in (*check.needs, *check.alike)}
    for node in snapshot.nodes:
        late = [
            late_fact
            for name in node.facts.__struct_fields__
            if name in read or len(ran) == len(runs)
            for late_fact in _late(getattr(node.facts, name), name)
        ]
        more = [f"{len(late) - _MOST_LATE} more"] if len(late) > _MOST_LATE else []
        if late:
            named = ", ".join(late[:_MOST_LATE] + more)
            yield f"facts of {node.host} that did not come in time: {named}"


def _late(value: object, name: str) -> Iterator[str]:
    """Yield the name of every fact within `value` that is missing because it was late, with what was waited for."""
    if isinstance(value, Missing):
        if value.missing == "timeout":
            yield f"{name} ({value.detail})" if value.detail else name
    elif isinstance(value, Struct):
        for field in value.__struct_fields__:
            yield from _late(getattr(value, field), f"{name}.{field}" if name else field)
    elif isinstance(value, tuple):
        for item in value:
            yield from _late(item, name)


def _is_absent(isolation: Fact[PairIsolation]) -> bool:
    return isinstance(isolation, Missing) and isolation.missing == "absent"


def _isolation_not_done(snapshot: Snapshot) -> Iterator[str]:
    isolation = snapshot.isolation
    if isinstance(isolation, Missing):
        why = "it takes two nodes" if snapshot.nnodes == 1 else "no round was finished"
        reason = why if isolation.missing == "absent" else isolation.detail or isolation.missing
        yield f"no pairs of nodes were tested: {reason}"
    elif isolation.unheard is not None:
        yield f"the tests were cut short: {fold_hosts(isolation.unheard.hosts)} fell silent: {isolation.unheard.words}"
    elif isolation.undecided:
        yield f"the tests do not show whether {fold_hosts(isolation.undecided)} is good: run it again"
    elif isolation.reference_gbit_s is None:
        yield "no pair of nodes finished a test"


def _matrix_not_done(snapshot: Snapshot) -> Iterator[str]:
    matrix = snapshot.matrix
    if isinstance(matrix, Missing):
        why = "it takes two nodes" if snapshot.nnodes == 1 else "no round was finished"
        reason = why if matrix.missing == "absent" else matrix.detail or matrix.missing
        yield f"no pairs of nodes were measured: {reason}"
    elif matrix.unheard is not None:
        yield f"the matrix was not finished: {fold_hosts(matrix.unheard.hosts)} fell silent: {matrix.unheard.words}"
    elif not matrix.is_finished:
        yield "the matrix was not finished: give it a longer --timeout"
    elif matrix.oversubscription is None:
        yield "it takes four nodes that answer to tell leaves and the ratio of the bisection"


def _by_rank(snapshot: Snapshot) -> list[Node]:
    return sorted(snapshot.nodes, key=lambda node: (node.node_rank, node.host))


def _node_entries(snapshot: Snapshot) -> tuple[NodeEntry, ...]:
    silent = {silent_node.host: silent_node for silent_node in snapshot.silent}
    reported = {node.host for node in snapshot.nodes}
    entries = [
        NodeEntry(node.host, node.node_rank, "silent" if node.host in silent else "reported", node.facts)
        for node in snapshot.nodes
    ]
    entries += [
        NodeEntry(host, silent_node.node_rank, "silent")
        for host, silent_node in silent.items()
        if host not in reported
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.node_rank, entry.host)))


def _check_entry(run: CheckRun) -> CheckEntry:
    return CheckEntry(run.code, run.slug, run.title, run.outcome, run.reason, run.seconds)


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(
        findings,
        key=lambda finding: (
            SEVERITIES.index(finding.severity),
            finding.code,
            finding.hosts,
            finding.summary,
        ),
    )


def nccl_entry(host: str, choice: Fact[Prediction]) -> Fact[NcclEntry]:
    """Return what NCCL chooses on `host`, as the report shows it; Missing stays Missing."""
    if isinstance(choice, Missing):
        return choice
    return NcclEntry(
        host=host,
        version=choice.version,
        library=choice.library,
        interface=choice.interface,
        address=choice.address,
        source=choice.source,
        reason=choice.reason,
        candidates=choice.candidates,
        network=choice.network,
        network_reason=choice.network_reason,
        hcas=choice.hcas,
        gpu_nic=choice.gpu_nic,
        gpudirect=choice.gpudirect,
        changes=choice.changes,
        fails=choice.fails,
    )
