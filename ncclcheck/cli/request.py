"""From the options of a command line to the RunOptions of a run; every contradiction is refused here."""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.checks.registry import Selection, all_checks, matching
from ncclcheck.cli.benchmarks.mesh_request import given_mesh, mesh_request
from ncclcheck.cli.benchmarks.ops import given_ops
from ncclcheck.cli.benchmarks.site_file import site_topology
from ncclcheck.cli.benchmarks.soak_request import refuse_short, soak_request
from ncclcheck.cli.benchmarks.try_request import refuse_against_policy, try_request
from ncclcheck.cli.demands import bench_demands
from ncclcheck.cli.files import read_text
from ncclcheck.cli.hosts_option import head_request
from ncclcheck.cli.key_option import key_or_refusal
from ncclcheck.cli.options import USUAL_TIMEOUTS
from ncclcheck.cli.values import WholeNumber
from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.facts.kept_environment import read_environment
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.bench_setup import BenchRequest, Under
from ncclcheck.model.benchmarks.isolation import (
    LEAST_EFFECT,
    MOST_EFFECT,
    IsolateRequest,
    MatrixScope,
    parse_pair_size,
)
from ncclcheck.model.errors import UsageError
from ncclcheck.model.policy.policy import Policy, parse_policy
from ncclcheck.model.units import parse_part, parse_sizes
from ncclcheck.nccl.variables.variables import TABLE, lookup
from ncclcheck.run.options import Command, RunOptions

_WITH_PORT = re.compile(r"([^:]+):(\d+)", re.ASCII)  # more colons are an IPv6 address
# Every point costs rounds: intervals hold for all of them together.
TRYING = BenchRequest((1 << 20, 1 << 24), ("all_reduce",), budget_s=timeouts.TRY_BUDGET_S)
_SELECTIONS = ("select", "ignore", "demote", "require")


def run_options(command: Command, option_values: Mapping[str, Any]) -> RunOptions:
    """Return what `option_values` (option name -> value; None, () or absent: not given) asks for, policy file included.

    The command line wins over the policy where both name a single value; lists add up. Raises UsageError.
    """
    policy = read_policy(option_values)
    option_values = _with_policy(command, option_values, policy)
    bench = bench_request(option_values)
    if command == "soak":
        bench = replace(bench, soak=soak_request(option_values))
    refuse_against_policy(bench.tries, policy)
    usual_s = USUAL_TIMEOUTS.get(command, timeouts.BENCH_TIMEOUT_S + bench.budget_s)
    if command == "bench" and option_values.get("isolate"):
        usual_s += timeouts.ISOLATE_TIMEOUT_S
    usual_s += bench.soak.duration_s if bench.soak is not None else 0.0
    timeout_s, join_timeout_s = _timeouts(option_values, usual_s)
    if bench.soak is not None:
        refuse_short(bench.soak, timeout_s)
    head = head_request(option_values, os.environ)
    if head is not None and policy.nodes not in (None, len(head.hosts)):
        expect = option_values["expect"]
        raise UsageError(
            f"{len(head.hosts)} hosts contradict nodes = {policy.nodes} in {expect}: make them the same"
        )
    return RunOptions(
        command=command,
        flags=LaunchFlags() if command == "node" else _flags(option_values, policy),
        head=head,
        meet_in=option_values.get("meet_in"),
        **_key(option_values),
        # What a policy demands of nodes cannot be asked of an image; what the command line does, is answered: exit 3.
        gpus_per_node=_first(
            option_values.get("gpus_per_node"), None if option_values.get("image") else policy.gpus_per_node
        ),
        expected=policy.expected if option_values.get("expect") else None,
        code_paths=tuple(option_values.get("code") or ()),
        data_paths=tuple(option_values.get("data") or ()),
        shared_paths=tuple(option_values.get("shared_dir") or ()),
        checkpoint_paths=tuple(option_values.get("checkpoint") or ()),
        mesh=given_mesh(option_values),
        selection=_selection(option_values, policy),
        fail_on=option_values.get("fail_on") or policy.fail_on or "error",
        timeout_s=timeout_s,
        join_timeout_s=join_timeout_s,
        bench=bench,
        isolate=_isolate_request(option_values, command)
        if command in ("isolate", "matrix") or option_values.get("isolate")
        else None,
        demands=replace(
            bench_demands(option_values, bench, policy.floors),
            topology=site_topology(
                command,
                option_values,
                os.environ,
                None if head or option_values.get("from_") else _flags(option_values, policy),
            ),
        ),
        preflight=not option_values.get("no_preflight"),
        wants_documents=bool(option_values.get("output") or option_values.get("save")),
    )


def _key(option_values: Mapping[str, Any]) -> dict[str, Any]:
    key = key_or_refusal(option_values, os.environ)
    return {"key" if isinstance(key, RunKey) else "refused_key": key}


def _with_policy(command: Command, option_values: Mapping[str, Any], policy: Policy) -> Mapping[str, Any]:
    """Return the options, and where they say nothing, what the policy's table of this measurement says."""
    sections = {
        "soak": command == "soak",
        "matrix": command == "matrix",
        "isolate": command == "isolate" or option_values.get("isolate"),
        "try": option_values.get("try_") or option_values.get("try_file"),
    }
    of_policy = {
        option: text
        for section, option, text in ((*name.split(".", 1), text) for name, text in policy.options.items())
        if sections[section]
    }
    return {
        **option_values,
        **{name: text for name, text in of_policy.items() if option_values.get(name) is None},
    }


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _timeouts(option_values: Mapping[str, Any], usual_s: float) -> tuple[float, float]:
    timeout_s = option_values.get("timeout") or usual_s
    join_timeout_s = option_values.get("join_timeout")
    if join_timeout_s is not None and join_timeout_s > timeout_s:
        raise UsageError(
            f"--join-timeout {join_timeout_s:g} is longer than the whole run (--timeout {timeout_s:g}): "
            "give a shorter one, or a longer --timeout"
        )
    return timeout_s, join_timeout_s or min(timeouts.JOIN_TIMEOUT_S, timeout_s)


def _flags(option_values: Mapping[str, Any], policy: Policy) -> LaunchFlags:
    nnodes, node_rank = option_values.get("nnodes"), option_values.get("node_rank")
    if nnodes is not None and policy.nodes not in (None, nnodes):
        raise UsageError(
            f"--nnodes {nnodes} contradicts nodes = {policy.nodes} in {option_values['expect']}: make them the same"
        )
    if nnodes is not None and node_rank is not None and node_rank >= nnodes:
        raise UsageError(
            f"--node-rank {node_rank} is impossible with --nnodes {nnodes}: expected 0 to {nnodes - 1}"
        )
    master_addr = option_values.get("master_addr")
    if master_addr and master_addr.split() == [master_addr.strip()] and master_addr.strip() != master_addr:
        raise UsageError(
            f"--master-addr {master_addr!r}: there is a space in it: write {master_addr.strip()}"
        )
    if master_addr is not None and (not master_addr or master_addr.split() != [master_addr]):
        raise UsageError(f"--master-addr {master_addr!r}: expected the name or address of node 0")
    if master_addr is not None and (match := _WITH_PORT.fullmatch(master_addr)):
        raise UsageError(
            f"--master-addr {master_addr!r}: this has a port in it: write --master-addr {match[1]} "
            f"--master-port {match[2]}"
        )
    return LaunchFlags(
        nnodes=_first(nnodes, policy.nodes),
        node_rank=node_rank,
        master_addr=master_addr,
        master_port=option_values.get("master_port"),
        nproc_per_node=option_values.get("nproc_per_node"),
    )


def _selection(option_values: Mapping[str, Any], policy: Policy) -> Selection:
    lists: dict[str, tuple[str, ...]] = {}
    for option in _SELECTIONS:
        on_command_line = [name for names in option_values.get(option) or () for name in names]
        refuse_unknown_checks(on_command_line, f"--{option}")
        in_policy = policy.select if option == "select" else ()
        refuse_unknown_checks(in_policy, f"--expect {option_values.get('expect')}: {option}:")
        lists[option] = tuple(dict.fromkeys([*on_command_line, *in_policy]))
    return Selection(lists["select"], lists["ignore"], lists["demote"], lists["require"])


def read_policy(option_values: Mapping[str, Any]) -> Policy:
    """Read the policy of --expect with the profile of --profile; without --expect it is empty. Raises UsageError."""
    file, profile = option_values.get("expect"), option_values.get("profile")
    if not file:
        if profile is not None:
            raise UsageError(
                f"--profile {profile}: a profile is a part of a policy: give its file with --expect"
            )
        return Policy()
    policy = parse_policy(read_text(file, "--expect"), file, profile)
    for rule in policy.expected.rules:
        refuse_unknown_checks([rule.check], f"--expect {rule.source}: {rule.kind}:")
    for expectation in policy.expected.expectations:
        section, _, name = expectation.key.partition(".")
        if section == "environment":
            _refuse_unreadable(name, f"--expect {expectation.source}: {expectation.key}:")
    return policy


def _refuse_unreadable(name: str, where: str) -> None:
    """Reject a variable that no report may show, since nobody could judge it; and a misspelt demanded name."""
    if name not in read_environment({name: ""}):
        raise UsageError(
            f"{where} ncclcheck does not read this variable: it reads what explains how a job runs (NCCL_, TORCH_, "
            "GLOO_, CUDA_, OMP_, SLURM_, UCX_, FI_, LD_LIBRARY_PATH and the like), and nothing that may be a secret"
        )
    near = difflib.get_close_matches(name, TABLE, 1, cutoff=0.85) if lookup(name) is None else []
    if near:
        raise UsageError(f"{where} no program reads a variable of this name: did you mean {near[0]!r}?")


def refuse_unknown_checks(names: Iterable[str], where: str) -> None:
    """Nothing, if each of `names` is a code, prefix or slug of a check; else UsageError with the nearest one."""
    for name in names:
        try:
            matching([name])
        except UsageError:
            known = [check.slug for check in all_checks()]
            near = difflib.get_close_matches(name.lower().replace("_", "-"), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else "'ncclcheck checks' lists codes and slugs"
            raise UsageError(f"{where} {name!r}: no such check: {hint}") from None


def bench_request(option_values: Mapping[str, Any]) -> BenchRequest:
    """Return what to measure, with defaults where nothing is given. Raises UsageError."""
    ops, tries = given_ops(option_values), try_request(option_values)
    usual = BenchRequest() if tries is None else TRYING
    return BenchRequest(
        sizes_bytes=usual.sizes_bytes
        if option_values.get("sizes") is None
        else parse_sizes(option_values["sizes"]),
        ops=ops or usual.ops,
        backend=option_values.get("backend") or usual.backend,
        dtype=_dtype(option_values.get("dtype")) or usual.dtype,
        iters=_iters(option_values.get("iters")),
        warmup=usual.warmup if option_values.get("warmup") is None else option_values["warmup"],
        budget_s=option_values.get("budget") or usual.budget_s,
        verify=not option_values.get("no_verify"),
        cuda_graph=_cuda_graph(option_values),
        under=_under(option_values),
        mesh=mesh_request(option_values, ops),
        tries=tries,
    )


def _isolate_request(option_values: Mapping[str, Any], command: Command) -> IsolateRequest:
    """Return what `isolate` is to ask; after a benchmark also from how many nodes on it is slow."""
    usual = IsolateRequest()
    effect = (
        usual.effect if option_values.get("slower_than") is None else _effect(option_values["slower_than"])
    )
    size_bytes = usual.most_bytes if option_values.get("size") is None else _pair_size(option_values["size"])
    seed = option_values.get("seed")
    return IsolateRequest(
        effect=effect,
        most_bytes=size_bytes,
        screen=option_values.get("screen") or usual.screen,
        most_rounds=option_values.get("max_rounds") or usual.most_rounds,
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        rings=command == "bench" or bool(option_values.get("groups")),
        matrix=_matrix_scope(option_values) if command == "matrix" else None,
    )


def _matrix_scope(option_values: Mapping[str, Any]) -> MatrixScope:
    if option_values.get("full") and option_values.get("leaves"):
        raise UsageError("--full and --leaves exclude each other: give one of them")
    return "full" if option_values.get("full") else "leaves" if option_values.get("leaves") else "auto"


def _effect(text: str) -> float:
    try:
        return parse_part(text, LEAST_EFFECT, MOST_EFFECT)
    except UsageError as error:
        raise UsageError(f"--slower-than {error}") from None


def _pair_size(text: str) -> int:
    try:
        return parse_pair_size(text)
    except UsageError as error:
        raise UsageError(f"--size {text!r}: {error}") from None


def _cuda_graph(option_values: Mapping[str, Any]) -> bool:
    if option_values.get("cuda_graph") and option_values.get("backend") == "gloo":
        raise UsageError("--cuda-graph is for nccl, and --backend is gloo: leave out one of them")
    return bool(option_values.get("cuda_graph"))


def _under(option_values: Mapping[str, Any]) -> Under:
    if option_values.get("as_is") and option_values.get("advised"):
        raise UsageError("--as-is and --advised exclude each other: give one of them")
    if option_values.get("advised") and option_values.get("no_preflight"):
        raise UsageError(
            "--advised needs the preflight, which finds what to advise: leave out --no-preflight"
        )
    return "as-is" if option_values.get("as_is") else "advised" if option_values.get("advised") else "proven"


def _dtype(name: str | None) -> str | None:
    if name is not None and name not in ELEMENT_BYTES:
        raise UsageError(f"--dtype {name!r}: expected one of {', '.join(ELEMENT_BYTES)}")
    return name


def _iters(text: str | None) -> int | None:
    if text is None or text.lower() == "auto":
        return None
    try:
        return WholeNumber(1, 10**7).convert(text, None, None)
    except UsageError:
        raise UsageError(f"--iters {text!r}: expected 'auto' or a whole number from 1 to 10000000") from None
