"""The commands that run on nodes: preflight, bench and run; and the run itself for whoever else needs one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ncclcheck.cli import options
from ncclcheck.cli.benchmarks import measuring_options
from ncclcheck.cli.benchmarks.try_options import tries
from ncclcheck.cli.usage import PrefixCommand
from ncclcheck.model.errors import UsageError
from ncclcheck.model.exit_code import UNKNOWN, USAGE

if TYPE_CHECKING:
    from ncclcheck.cli.commands.prefix import Prefixed
    from ncclcheck.model.report import Report
    from ncclcheck.model.saved import Saved
    from ncclcheck.run.options import Command, RunOptions, RunResult


@click.command(cls=PrefixCommand)
@options.preflight_options("preflight")
@options.image
@options.report_options
@measuring_options.mesh
@click.option("--apply", is_flag=True, help="Add the advised settings to the environment of COMMAND.")
@click.pass_context
def preflight(context: click.Context, /, **option_values: Any) -> None:
    """Are these nodes and this network fit for the job?

    Start it on every node as the job is started (torchrun, srun, mpirun), or by hand with --nnodes, --node-rank and
    --master-addr. Without either it checks only this node.

    With -- COMMAND it reads nodes, ranks, master address and script from COMMAND (torchrun, accelerate launch, fabric
    run, deepspeed, python), checks the nodes, and runs COMMAND (exec) if all checks pass. Otherwise COMMAND is not
    started, and the exit code is that of preflight.
    """
    context.exit(perform("preflight", option_values))


@click.command()
@measuring_options.bench_options
@measuring_options.after_bench
@measuring_options.mesh_bench_options
@tries
@click.option("--no-preflight", is_flag=True, help="Only measure, without the checks.")
@options.preflight_options("bench")
@options.bench_report_options
@click.pass_context
def bench(context: click.Context, /, **option_values: Any) -> None:
    """How fast are collectives between these nodes, and who is slow?

    Sizes and bandwidths are defined as in nccl-tests. Without a launcher it uses every GPU of this node, or two gloo
    ranks if there is none.
    """
    context.exit(perform("bench", option_values))


@click.command()
@measuring_options.run_options
@options.preflight_options("run")
@options.report_options
@click.pass_context
def run(context: click.Context, /, **option_values: Any) -> None:
    """Run preflight and bench, and report the settings to use."""
    context.exit(perform("run", option_values))


def perform(command: Command, option_values: Mapping[str, Any]) -> int:
    """Run or replay, write and print the report, and return the exit code; or become COMMAND, if one was given."""
    from ncclcheck.cli.outputs import refuse_bad_outputs
    from ncclcheck.cli.request import run_options
    from ncclcheck.report.formats import SUFFIXES, WITH_TABLES

    refuse_bad_outputs(option_values, WITH_TABLES if has_table(command, option_values) else SUFFIXES)
    run = run_options(command, option_values)
    os.environ.pop("NCCLCHECK_KEY", None)  # no process that is started from here on has it in its environment
    prefixed = _prefixed(option_values, run)
    if prefixed is not None:
        from ncclcheck.cli.commands.prefix import before

        run = before(run, prefixed, applies=bool(option_values.get("apply")))
    ended = ended_run(run, option_values, prefixed.checked_environ if prefixed else os.environ)
    code = ended.report.verdict.exit_code
    all_written = deliver(ended, option_values)
    if prefixed is not None and code == 0:  # also where a file could not be written: all nodes start, or none
        _start(prefixed, ended, applies=run.applies)
    return (
        code if all_written else code or USAGE
    )  # CI that waits for the file must not take its absence for a pass


def has_table(command: Command, option_values: Mapping[str, Any]) -> bool:
    """Return whether its report can be a table: the pairs of `matrix`, or the rows of --try for a tuner."""
    return command == "matrix" or bool(option_values.get("try_") or option_values.get("try_file"))


def deliver(ended: RunResult, option_values: Mapping[str, Any]) -> bool:
    """Write and print the report, and release the other nodes; return whether everything got where it should."""
    from ncclcheck.cli.interrupts import uninterrupted
    from ncclcheck.cli.outputs import show, write_files
    from ncclcheck.facts.bounded_call import start
    from ncclcheck.timeouts import SHOWN_LONGEST_S, SHOWN_S

    with uninterrupted():
        unwritten = write_files(ended.report, ended.saved, option_values) if ended.writes else ()
    showing = start(show, ended.report, option_values, unwritten) if ended.prints else None
    if showing is not None:
        showing.result(SHOWN_S)
    ended.release()  # whether somebody reads here or not
    return not unwritten and (showing is None or showing.result(SHOWN_LONGEST_S) is True)


def _prefixed(option_values: Mapping[str, Any], run: RunOptions) -> Prefixed | None:
    if not option_values.get("command"):
        if option_values.get("apply"):
            raise UsageError("--apply is for the command that follows '--', and there is none")
        return None
    if option_values.get("from_"):
        raise UsageError(
            "--from replays a run that is over, so there is nothing to start after it: leave out '--'"
        )
    from ncclcheck.cli.commands.prefix import read_prefixed

    return read_prefixed(option_values["command"], os.environ, run.flags)


def _start(prefixed: Prefixed, ended: RunResult, *, applies: bool) -> NoReturn:
    """Replace this process by COMMAND once node 0 has left the master port."""
    from ncclcheck.advice.allowed import only_allowed
    from ncclcheck.cli.commands.prefix import advised_here, become, say_applied, say_refused
    from ncclcheck.facts.network.names import host_name

    advice, refused = only_allowed(ended.report.advice)
    settings = advised_here(advice, host_name()) if applies else []
    if applies:
        say_refused(refused)
    if applies and ended.prints:
        say_applied(settings)
    ended.until_free()
    become(prefixed, settings)


def ended_run(
    run: RunOptions, option_values: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> RunResult:
    """Run the command, or with --from replay it. A bug in it still ends as a report, with exit code 70."""
    from ncclcheck.cli.documents import load_saved

    try:
        if option_values.get("from_"):
            return _replayed(run, load_saved(option_values["from_"], run.command), option_values)
        return _live(run, option_values, environ)
    except UsageError:
        raise
    except Exception as error:  # whatever it is, the user gets a report, and CI a file
        return _bug(error, run, option_values)


def _live(run: RunOptions, option_values: Mapping[str, Any], environ: Mapping[str, str]) -> RunResult:
    from ncclcheck.cli.live import screen
    from ncclcheck.cli.screen import progress
    from ncclcheck.run.command import run_command

    if option_values.get("image"):
        from ncclcheck.cli.image_run import refuse_nodes, run_image

        refuse_nodes(run)
        if option_values.get("nnodes") is not None:  # one in the policy is for the nodes that it is for too
            raise UsageError("--image judges an image, which is no node: leave out --nnodes")
        if option_values.get("command"):
            raise UsageError("--image judges an image, which starts nothing: leave out '--' and what follows")
        return run_image(run, os.environ, progress(quiet=bool(option_values.get("quiet"))))

    with screen(quiet=bool(option_values.get("quiet"))) as shown:
        return run_command(run, environ, shown.say, show=shown.show)


def _replayed(run: RunOptions, saved: Any, option_values: Mapping[str, Any]) -> RunResult:
    from ncclcheck.run.replay import replay

    if option_values.get("image"):
        raise UsageError(
            "--image looks at this image, but --from replays what was seen before: leave one out"
        )
    _refuse_launch_flags(option_values)
    _refuse_run_of_another(saved, run.command, option_values["from_"])
    return replay(saved, run)


def _refuse_run_of_another(saved: Saved, command: Command, file: str) -> None:
    """Refuse a run that another command measured: its report would be that command's."""
    from ncclcheck.model.fact import Missing

    bench = saved.snapshot.bench
    is_there = {
        "isolate": not isinstance(saved.snapshot.isolation, Missing),
        "matrix": not isinstance(saved.snapshot.matrix, Missing),
        "soak": not isinstance(bench, Missing) and bench.soak is not None,
    }
    if not is_there.get(command, True) and saved.command not in ("preflight", command):
        raise UsageError(
            f"--from {file}: 'ncclcheck {saved.command}' saved this run, and '{command}' has nothing to show of it: "
            f"give a run of 'ncclcheck {command} --save FILE'"
        )


def _refuse_launch_flags(option_values: Mapping[str, Any]) -> None:
    for name in (
        "nnodes",
        "node_rank",
        "master_addr",
        "master_port",
        "nproc_per_node",
        "meet_in",
        "key_file",
    ):
        if option_values.get(name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} places a run on nodes, but --from replays one that is over: leave one out"
            )


def _bug(error: Exception, run: RunOptions, option_values: Mapping[str, Any]) -> RunResult:
    from datetime import datetime, timezone

    from msgspec.structs import replace

    from ncclcheck.cli.crash import describe, save_traceback
    from ncclcheck.cli.documents import SAVED_KIND
    from ncclcheck.model.report import SCHEMA_VERSION, Advice, Verdict
    from ncclcheck.model.saved import Saved
    from ncclcheck.model.snapshot import Snapshot
    from ncclcheck.report.build import build_report
    from ncclcheck.run.options import RunResult

    starved = _starved(error)
    path = (
        None
        if starved
        else save_traceback(error, [Path(file).parent for file in option_values.get("output") or ()])
    )
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report: Report = build_report(
        Snapshot(nodes=()),
        (),
        Advice(),
        command=run.command,
        created=created,
        elapsed_s=0.0,
        fail_on=run.fail_on,
        require=(),
        interrupted=False,
        bug=describe(error, path),
    )
    saved = Saved(
        schema_version=SCHEMA_VERSION,
        kind=SAVED_KIND,
        tool=report.tool,
        command=run.command,
        created=created,
        elapsed_s=0.0,
        interrupted=False,
        snapshot=Snapshot(nodes=()),
    )
    if starved:
        report = replace(report, verdict=Verdict("unknown", UNKNOWN, (starved,)))
    return RunResult(report, saved, prints=True)


def _starved(error: Exception) -> str:
    """Return the sentence that says what this machine does not have for ncclcheck; "" where the error is another."""
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        what = "memory" if isinstance(error, MemoryError) else "thread, for lack of memory or of processes"
        return f"this machine gives ncclcheck no further {what}: look at ulimit -v, ulimit -u and the control group"
    return ""
