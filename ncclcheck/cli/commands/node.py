"""`ncclcheck node`: this node alone, for timers and monitoring systems."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ncclcheck.cli import options
from ncclcheck.cli.usage import one_sentence
from ncclcheck.model.errors import NcclcheckError
from ncclcheck.model.exit_code import UNKNOWN, USAGE
from ncclcheck.model.formats.choices import PROTOCOLS
from ncclcheck.timeouts import SLURM_HEALTH_S

if TYPE_CHECKING:
    from ncclcheck.model.formats.choices import Protocol
    from ncclcheck.run.options import RunResult


class TimerCommand(click.Command):
    """A command whose every end, also a wrong option or a bug, is an answer in the protocol that --format names."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of these arguments; with a protocol a wrong one is its unknown."""
        protocol = _protocol_in(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except (click.ClickException, NcclcheckError) as error:
            if protocol is None:
                raise
            reason = one_sentence(error) if isinstance(error, click.ClickException) else str(error)
            raise click.exceptions.Exit(_say_unknown(protocol, reason)) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; with a protocol every error is its unknown."""
        protocol = _protocol(ctx.params)
        if protocol is None:
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(_say_unknown(protocol, "interrupted")) from None
        except NcclcheckError as error:
            raise click.exceptions.Exit(_say_unknown(protocol, str(error))) from error
        except Exception as error:  # a bug of ours says nothing about the node
            from ncclcheck.cli.crash import describe, save_traceback

            reason = f"a bug in ncclcheck: {describe(error, save_traceback(error))}"
            raise click.exceptions.Exit(_say_unknown(protocol, reason)) from error


def _protocol_in(arguments: Sequence[str]) -> Protocol | None:
    """Return the protocol that `--format` names, also where another argument is wrong."""
    found = None
    for at, argument in enumerate(arguments):
        if argument == "--format" and at + 1 < len(arguments):
            found = arguments[at + 1]
        elif argument.startswith("--format="):
            found = argument.removeprefix("--format=")
    return _protocol({"format_": (found or "").strip().lower()})


def _protocol(option_values: Mapping[str, Any]) -> Protocol | None:
    format_ = option_values.get("format_")
    return format_ if format_ in PROTOCOLS else None


def _say_unknown(protocol: Protocol, why: str) -> int:
    """Print the line and return the exit code of a run that says nothing about the node."""
    from ncclcheck.cli.screen import write_error, write_out
    from ncclcheck.report.fleet.status_line import UNKNOWN as UNKNOWN_CODES
    from ncclcheck.report.fleet.status_line import unknown_line

    write_error(f"error: {why}")  # whole: the line is cut
    write_out(unknown_line(protocol, why))
    return UNKNOWN_CODES[protocol]


@click.command(cls=TimerCommand)
@options.node_options
@options.node_report_options
@click.pass_context
def node(context: click.Context, /, **option_values: Any) -> None:
    """Is this node fit, as far as it can tell on its own?

    For health checks and timers. Contacts no other node and ignores the launcher: runs every check that needs no peer,
    and ends within --timeout. A fact that is not read in time is named, and makes the run inconclusive (exit 3).

    Exit codes of --format npd (node-problem-detector): 0 fit, 1 not fit, 2 unknown; of --format nagios: 0 OK, 1
    warning, 2 critical, 3 unknown. Otherwise they are those of every command.

    --slurm-health is for Slurm's HealthCheckProgram. It is the only option of ncclcheck that changes anything: it runs
    'scontrol update' for this node. It never touches a node that somebody else drained.
    """
    context.exit(examine(option_values))


def examine(option_values: Mapping[str, Any]) -> int:
    """Check this node, write and print the report, and return the exit code in the protocol that was asked for."""
    from ncclcheck.cli.commands.session import deliver, ended_run
    from ncclcheck.cli.outputs import refuse_bad_outputs
    from ncclcheck.cli.request import run_options
    from ncclcheck.cli.screen import write_error
    from ncclcheck.cli.slurm_health.act import act, health_request
    from ncclcheck.facts.network.names import host_name

    refuse_bad_outputs(option_values)
    health = health_request(option_values, os.environ, host_name())
    run = run_options("node", option_values)
    limit_s = run.timeout_s
    if health is not None:
        run = replace(run, timeout_s=max(run.timeout_s - SLURM_HEALTH_S, run.timeout_s / 2))
    watchdog = threading.Timer(limit_s, _give_up, (_protocol(option_values), limit_s))
    watchdog.daemon = True
    watchdog.start()
    try:
        ended = ended_run(run, option_values)
        all_written = deliver(ended, option_values)
        has_acted = health is None or act(ended.report, health, write_error)
    finally:
        watchdog.cancel()
    return exit_code(ended, option_values, all_written=all_written, has_acted=has_acted)


def exit_code(
    ended: RunResult, option_values: Mapping[str, Any], *, all_written: bool, has_acted: bool = True
) -> int:
    """Return the exit code. A good node whose file or state in Slurm could not be written is none."""
    from ncclcheck.report.fleet.status_line import UNKNOWN as UNKNOWN_CODES
    from ncclcheck.report.fleet.status_line import status_code

    protocol = _protocol(option_values)
    unwritten = USAGE if protocol is None else UNKNOWN_CODES[protocol]
    code = ended.report.verdict.exit_code if protocol is None else status_code(ended.report, protocol)
    if not has_acted:
        return code or (UNKNOWN if protocol is None else UNKNOWN_CODES[protocol])
    return code if all_written else code or unwritten


def _give_up(protocol: Protocol | None, timeout_s: float) -> None:
    """End the process: something hangs that has no deadline of its own, and whoever started the timer has to know."""
    from ncclcheck.cli.screen import write_error

    why = f"no answer within {timeout_s:g} s"
    code = UNKNOWN
    if protocol is None:
        write_error(f"error: {why}")
    else:
        code = _say_unknown(protocol, why)
    os._exit(code)
