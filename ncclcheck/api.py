"""ncclcheck from Python: the commands that meet other nodes as functions that return the report.

They are `preflight`, `bench`, `run`, `isolate`, `matrix` and `soak`.

    import ncclcheck

    report = ncclcheck.preflight(gpus_per_node=8)
    if report.verdict.exit_code:
        raise SystemExit(ncclcheck.to_text(report))

They may be called in a plain process, or on every rank that torchrun, srun, mpirun or another launcher started, before
`init_process_group`; there every rank must call them, as often as the others do. Nothing is printed, and nothing is
left behind: the master port is free again when they return. Options have the names and the meaning of the command
line; None, () and False stand for an option that was not given. Where an option may be repeated, a string is one value.

The report is the whole one on each node's first rank (LOCAL_RANK 0); a further rank has the same verdict, with what it
saw itself. A finding is no exception: look at `report.verdict`. Raises UsageError for what would be wrong usage of the
command (exit code 2), and nothing else on purpose.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ncclcheck.model.formats.choices import FailOn

if TYPE_CHECKING:
    from ncclcheck.model.report import Report
    from ncclcheck.run.options import Command

FilePath: TypeAlias = "str | Path"
Several: TypeAlias = "str | Sequence[str]"
SeveralPaths: TypeAlias = "FilePath | Sequence[FilePath]"
_calls = itertools.count()


def preflight(
    *,
    nnodes: int | None = None,
    node_rank: int | None = None,
    master_addr: str | None = None,
    master_port: int | None = None,
    nproc_per_node: int | None = None,
    hosts: str | None = None,
    hostfile: FilePath | None = None,
    ssh: str | None = None,
    remote_python: FilePath | None = None,
    env: Several = (),
    meet_in: FilePath | None = None,
    key_file: FilePath | None = None,
    gpus_per_node: int | None = None,
    code: SeveralPaths = (),
    data: SeveralPaths = (),
    shared_dir: SeveralPaths = (),
    checkpoint: SeveralPaths = (),
    expect: FilePath | None = None,
    profile: str | None = None,
    select: Several = (),
    ignore: Several = (),
    demote: Several = (),
    require: Several = (),
    fail_on: FailOn | None = None,
    timeout: float | None = None,
    join_timeout: float | None = None,
    from_: FilePath | None = None,
    mesh: str | None = None,
    mesh_order: str | None = None,
    image: bool = False,
) -> Report:
    """Return the report of `ncclcheck preflight`: are these nodes and this network fit for the job?

    `timeout` and `join_timeout` are seconds; `from_` replays a saved run instead; the others are the options of
    `ncclcheck preflight --help`. Raises UsageError.
    """
    return _report("preflight", dict(locals()))


def bench(
    *,
    sizes: str | None = None,
    ops: Several = (),
    backend: Literal["auto", "nccl", "gloo"] | None = None,
    dtype: str | None = None,
    iters: int | Literal["auto"] | None = None,
    warmup: int | None = None,
    budget: float | None = None,
    no_verify: bool = False,
    cuda_graph: bool = False,
    as_is: bool = False,
    advised: bool = False,
    min_busbw: Several = (),
    baseline: FilePath | None = None,
    tolerance: float | None = None,
    no_preflight: bool = False,
    nnodes: int | None = None,
    node_rank: int | None = None,
    master_addr: str | None = None,
    master_port: int | None = None,
    nproc_per_node: int | None = None,
    hosts: str | None = None,
    hostfile: FilePath | None = None,
    ssh: str | None = None,
    remote_python: FilePath | None = None,
    env: Several = (),
    meet_in: FilePath | None = None,
    key_file: FilePath | None = None,
    gpus_per_node: int | None = None,
    code: SeveralPaths = (),
    data: SeveralPaths = (),
    shared_dir: SeveralPaths = (),
    checkpoint: SeveralPaths = (),
    expect: FilePath | None = None,
    profile: str | None = None,
    select: Several = (),
    ignore: Several = (),
    demote: Several = (),
    require: Several = (),
    fail_on: FailOn | None = None,
    timeout: float | None = None,
    join_timeout: float | None = None,
    from_: FilePath | None = None,
    isolate: bool = False,
    mesh: str | None = None,
    mesh_order: str | None = None,
    dims: Several = (), mix: bool = False,
    model: FilePath | None = None, batch: int | None = None, sequence: int | None = None,
    strategy: Literal["fsdp", "megatron"] | None = None,
    try_: Several = (), try_file: FilePath | None = None, gain: str | None = None, seed: int | None = None,
) -> Report:  # fmt: skip
    """Return the report of `ncclcheck bench`: how fast are collectives between these nodes, and who is slow?

    `sizes` is "1M-1G" and the like, `budget` seconds for all measuring, `min_busbw` GB/s, `tolerance` per cent. The
    measurements are `report.bench`, in the groups of `mesh` `report.bench.mesh`, of the
    settings of `try_` `report.bench.trials`. Raises UsageError.
    """
    return _report("bench", dict(locals()))


def run(
    *,
    sizes: str | None = None,
    ops: Several = (),
    backend: Literal["auto", "nccl", "gloo"] | None = None,
    dtype: str | None = None,
    iters: int | Literal["auto"] | None = None,
    warmup: int | None = None,
    budget: float | None = None,
    no_verify: bool = False,
    cuda_graph: bool = False,
    as_is: bool = False,
    advised: bool = False,
    min_busbw: Several = (),
    baseline: FilePath | None = None,
    tolerance: float | None = None,
    nnodes: int | None = None,
    node_rank: int | None = None,
    master_addr: str | None = None,
    master_port: int | None = None,
    nproc_per_node: int | None = None,
    hosts: str | None = None,
    hostfile: FilePath | None = None,
    ssh: str | None = None,
    remote_python: FilePath | None = None,
    env: Several = (),
    meet_in: FilePath | None = None,
    key_file: FilePath | None = None,
    gpus_per_node: int | None = None,
    code: SeveralPaths = (),
    data: SeveralPaths = (),
    shared_dir: SeveralPaths = (),
    checkpoint: SeveralPaths = (),
    expect: FilePath | None = None,
    profile: str | None = None,
    select: Several = (),
    ignore: Several = (),
    demote: Several = (),
    require: Several = (),
    fail_on: FailOn | None = None,
    timeout: float | None = None,
    join_timeout: float | None = None,
    from_: FilePath | None = None,
) -> Report:
    """Return the report of `ncclcheck run`: preflight and bench, with the settings to use in `report.advice`.

    Raises UsageError.
    """
    return _report("run", dict(locals()))


def isolate(
    *,
    slower_than: str | None = None, size: str | None = None, screen: int | None = None,
    max_rounds: int | None = None, groups: bool = False, seed: int | None = None,
    backend: Literal["auto", "nccl", "gloo"] | None = None,
    nnodes: int | None = None, node_rank: int | None = None, master_addr: str | None = None,
    master_port: int | None = None, nproc_per_node: int | None = None, hosts: str | None = None,
    hostfile: FilePath | None = None, ssh: str | None = None, remote_python: FilePath | None = None,
    env: Several = (), meet_in: FilePath | None = None, key_file: FilePath | None = None,
    gpus_per_node: int | None = None, code: SeveralPaths = (), data: SeveralPaths = (),
    shared_dir: SeveralPaths = (), checkpoint: SeveralPaths = (), expect: FilePath | None = None,
    profile: str | None = None, select: Several = (), ignore: Several = (), demote: Several = (),
    require: Several = (), fail_on: FailOn | None = None,
    timeout: float | None = None, join_timeout: float | None = None, from_: FilePath | None = None,
) -> Report:  # fmt: skip
    """Return the report of `ncclcheck isolate`: which nodes or links are slow, hang or fail?

    `slower_than` is per cent as "10%", `size` the bytes of a transfer as "64M". Rounds and what they name are
    `report.isolation`. Raises UsageError.
    """
    return _report("isolate", dict(locals()))


def matrix(
    *,
    full: bool = False, leaves: bool = False, topology: FilePath | None = None, size: str | None = None,
    backend: Literal["auto", "nccl", "gloo"] | None = None,
    nnodes: int | None = None, node_rank: int | None = None, master_addr: str | None = None,
    master_port: int | None = None, nproc_per_node: int | None = None, hosts: str | None = None,
    hostfile: FilePath | None = None, ssh: str | None = None, remote_python: FilePath | None = None,
    env: Several = (), meet_in: FilePath | None = None, key_file: FilePath | None = None,
    gpus_per_node: int | None = None, code: SeveralPaths = (), data: SeveralPaths = (),
    shared_dir: SeveralPaths = (), checkpoint: SeveralPaths = (), expect: FilePath | None = None,
    profile: str | None = None, select: Several = (), ignore: Several = (), demote: Several = (),
    require: Several = (), fail_on: FailOn | None = None,
    timeout: float | None = None, join_timeout: float | None = None, from_: FilePath | None = None,
) -> Report:  # fmt: skip
    """Return the report of `ncclcheck matrix`: how fast is the network between the nodes?

    `size` is the bytes of a transfer as "64M". Rates, leaves and slow paths are `report.matrix`. Raises UsageError.
    """
    return _report("matrix", dict(locals()))


def soak(
    *,
    duration: str | None = None,
    ops: Several = (),
    size: str | None = None,
    every: str | None = None,
    drop: str | None = None,
    duty: str | None = None,
    state: FilePath | None = None,
    resume: FilePath | None = None,
    until_finding: bool = False,
    backend: Literal["auto", "nccl", "gloo"] | None = None,
    no_preflight: bool = False,
    nnodes: int | None = None,
    node_rank: int | None = None,
    master_addr: str | None = None,
    master_port: int | None = None,
    nproc_per_node: int | None = None,
    hosts: str | None = None,
    hostfile: FilePath | None = None,
    ssh: str | None = None,
    remote_python: FilePath | None = None,
    env: Several = (),
    meet_in: FilePath | None = None,
    key_file: FilePath | None = None,
    gpus_per_node: int | None = None,
    code: SeveralPaths = (),
    data: SeveralPaths = (),
    shared_dir: SeveralPaths = (),
    checkpoint: SeveralPaths = (),
    expect: FilePath | None = None,
    profile: str | None = None,
    select: Several = (),
    ignore: Several = (),
    demote: Several = (),
    require: Several = (),
    fail_on: FailOn | None = None,
    timeout: float | None = None,
    join_timeout: float | None = None,
    from_: FilePath | None = None,
) -> Report:
    """Return the report of `ncclcheck soak`: does the network stay fast for hours?

    `duration` and `every` are times as "2h" and "10s", `drop` and `duty` per cent. The series is `report.soak`; its
    blocks are in the folder `state` on node 0. Raises UsageError.
    """
    return _report("soak", dict(locals()))


def to_text(report: Report, *, verbose: int = 0) -> str:
    """Return the report as the command prints it, without colours."""
    from ncclcheck.report.text.terminal import render

    return render(report, verbose=verbose)


def to_json(report: Report) -> str:
    """Return the report as `--format json` prints it."""
    from ncclcheck.report.document import to_json as document

    return document(report)


def _report(command: Command, option_values: Mapping[str, Any]) -> Report:
    from msgspec.structs import replace

    from ncclcheck.cli.commands.session import ended_run
    from ncclcheck.cli.documents import collector_as_before
    from ncclcheck.cli.request import run_options

    options = _as_on_the_command_line(command, option_values)
    before = os.environ.get("TORCH_CPP_LOG_LEVEL")
    key = os.environ.get("NCCLCHECK_KEY")
    try:
        with collector_as_before():
            asked = replace(run_options(command, options), number=next(_calls), wants_documents=True)
            os.environ.pop("NCCLCHECK_KEY", None)  # no child process may have it in its environment
            ended = ended_run(asked, options)
        ended.release()
        ended.until_free()
    finally:
        if before is None:  # the run silences torch's C++ code, which is not for the caller's own
            os.environ.pop("TORCH_CPP_LOG_LEVEL", None)
        if key is not None:
            os.environ["NCCLCHECK_KEY"] = key
    return ended.report


def _as_on_the_command_line(command: Command, option_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as click would parse them, with the command's own types. Raises UsageError."""
    import click

    from ncclcheck.cli.commands import isolate, matrix, session, soak
    from ncclcheck.cli.usage import one_sentence
    from ncclcheck.model.errors import UsageError

    known: dict[str, click.Command] = {
        "preflight": session.preflight,
        "bench": session.bench,
        "run": session.run,
        "isolate": isolate.isolate,
        "matrix": matrix.matrix,
        "soak": soak.soak,
    }
    context = click.Context(known[command], info_name=f"ncclcheck.{command}")
    read: dict[str, Any] = {"quiet": True}
    for option in known[command].params:
        value = option_values.get(option.name or "")
        if value is None or value is False or value == ():
            continue
        try:
            read[option.name or ""] = option.type_cast_value(context, _words(option, value))
        except click.ClickException as error:
            raise UsageError(one_sentence(error)) from error
    return read


def _words(option: Any, value: Any) -> Any:
    if option.multiple:
        several = [value] if isinstance(value, str | Path) else list(value)
        return [str(entry) for entry in several]
    return value if isinstance(value, bool) else str(value)
