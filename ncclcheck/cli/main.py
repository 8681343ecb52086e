"""The command line: which command, and how the process ends whatever happens."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click

import ncclcheck
from ncclcheck.cli.commands.checks import checks
from ncclcheck.cli.commands.env import env
from ncclcheck.cli.commands.explain import explain
from ncclcheck.cli.commands.facts import facts
from ncclcheck.cli.commands.isolate import isolate
from ncclcheck.cli.commands.matrix import matrix
from ncclcheck.cli.commands.node import node
from ncclcheck.cli.commands.predict import predict
from ncclcheck.cli.commands.remote import remote
from ncclcheck.cli.commands.report import report
from ncclcheck.cli.commands.session import bench, preflight, run
from ncclcheck.cli.commands.soak import soak
from ncclcheck.cli.commands.watch import watch
from ncclcheck.cli.dead_home import import_beside_a_dead_home
from ncclcheck.cli.usage import CommandGroup, one_sentence
from ncclcheck.facts.bounded_call import within
from ncclcheck.model.errors import NcclcheckError
from ncclcheck.model.exit_code import BUG, INTERRUPTED, USAGE
from ncclcheck.timeouts import ERROR_LINE_S

# Facts are trees of millions of objects without a cycle. By default the collector walks them again and again, which
# takes as long as the checks of thousands of nodes.
_COLLECTED_EACH = (50_000, 20, 100)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@click.group(
    cls=CommandGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
        "token_normalize_func": lambda token: token.replace("_", "-"),  # torchrun takes both, so do we
    },
)
@click.version_option(ncclcheck.__version__, prog_name="ncclcheck", message="%(prog)s %(version)s")
def command() -> None:
    """Are these nodes and this network fit for a multi-node GPU job, and if not, why not?

    Exit codes: 0 passed; 1 a finding; 2 wrong usage; 3 inconclusive; 4 the benchmark failed; 70 a bug in ncclcheck;
    130 interrupted.

    For shell completion add eval "$(_NCCLCHECK_COMPLETE=bash_source ncclcheck)" to ~/.bashrc (zsh_source and
    fish_source for those shells).
    """


for _command in (
    preflight,
    bench,
    run,
    watch,
    isolate,
    matrix,
    soak,
    node,
    env,
    predict,
    explain,
    report,
    facts,
    checks,
    remote,
):
    command.add_command(_command)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. An error is one sentence on standard error, never a traceback."""
    from ncclcheck.cli.screen import write_error

    try:
        _note_dead_home()
        code = command.main(list(arguments), prog_name="ncclcheck", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except NcclcheckError as error:
        write_error(f"error: {error}")
        return USAGE
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        write_error(f"error: {one_sentence(error)}")
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        write_error("interrupted")
        return INTERRUPTED
    except SystemExit as ended:  # click's own way out of shell completion
        return ended.code if isinstance(ended.code, int) else 0
    except BrokenPipeError:
        return 0  # help or a version that nobody reads to its end
    except OSError as error:
        if error.errno not in _FULL:
            return _bug(error)
        write_error(f"error: standard output cannot be written: {error.strerror}")  # click's own, for help
        return USAGE
    except Exception as error:  # the last resort: a bug becomes a file and a sentence
        return _bug(error)


def _bug(error: Exception) -> int:
    from ncclcheck.cli.crash import describe, save_traceback
    from ncclcheck.cli.screen import write_error

    write_error(f"error: a bug in ncclcheck: {describe(error, save_traceback(error))}")
    return BUG


def main() -> NoReturn:
    """End the process with the command's exit code, even where a thread hangs in a library."""
    gc.set_threshold(*_COLLECTED_EACH)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for number, handler in _HANDLERS.items():
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP, and then so do we, and COMMAND
            signal.signal(number, handler)
    code = BUG
    try:
        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        code = INTERRUPTED
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                within(ERROR_LINE_S, stream.flush)  # where nobody reads, a thread still holds it
        os._exit(code)


def _note_dead_home() -> None:
    if warning := import_beside_a_dead_home():
        from ncclcheck.cli.screen import write_error

        write_error(f"warning: {warning}")


def _interrupt(*_: object) -> None:
    """Interrupt on SIGTERM (a batch system) and SIGHUP (a lost terminal): as with Ctrl-C the report is written."""
    raise KeyboardInterrupt


_HANDLERS: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: _interrupt,
    signal.SIGHUP: _interrupt,
}
