"""`ncclcheck remote`: one node of a run that a head node leads over ssh. For programs, not for people."""

from __future__ import annotations

import os
import signal
import threading
import tty
from contextlib import suppress

import click

from ncclcheck import timeouts
from ncclcheck.model.exit_code import INTERRUPTED


@click.command(hidden=True)
@click.pass_context
def remote(context: click.Context) -> None:
    """Serve --hosts on this node: the head node starts this and talks through standard input and output."""
    context.exit(take_part())


def take_part() -> int:
    """0 once the head node has given its verdict; 1 where it is gone or says nothing that can be used.

    When the connection ends, so does everything here: ssh that dies takes its standard input away, and hangs up.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nothing has begun that would have to be ended in order
    import ncclcheck
    from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA
    from ncclcheck.exchange.store.opening import over_pipe
    from ncclcheck.exchange.store.pipe import Pipe, write_all
    from ncclcheck.model.codec import decode, encode
    from ncclcheck.run.command import run_command
    from ncclcheck.run.roles.ssh_head import RemoteTask
    from ncclcheck.spawn.fleet import GREETING, RemoteGreeting

    reader, writer = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what libraries print is none of our words
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 (a device)
        os.dup2(nothing.fileno(), 0)
    over = threading.Event()
    has_terminal = os.isatty(reader)
    if has_terminal:
        tty.setraw(reader)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of standard input has the same meaning
    greeting = encode(RemoteGreeting(ncclcheck.__version__, SCHEMA))
    write_all(writer, b"\n" + GREETING.encode() + greeting + b"\n")
    pipe = Pipe(reader, writer, lambda: None if over.is_set() else _end())
    pipe.begins_lines = has_terminal
    line = pipe.next_line(timeouts.REMOTE_TASK_S)
    if line is None:
        return 1
    task = decode(line, RemoteTask, limit_bytes=FACTS_LIMIT_BYTES)
    with suppress(OSError):  # then where the login leads
        os.chdir(task.folder)
    store = over_pipe(pipe, task.port)
    ended = run_command(task.options, os.environ, lambda _: None, store)
    over.set()
    ended.release()
    return 0 if store.lost is None else 1


def _end() -> None:
    """Interrupt the process, as Ctrl-C does, and end it soon after whatever it does."""
    last = threading.Timer(timeouts.REMOTE_ENDING_S, os._exit, (INTERRUPTED,))
    last.daemon = True
    last.start()
    os.kill(os.getpid(), signal.SIGTERM)
