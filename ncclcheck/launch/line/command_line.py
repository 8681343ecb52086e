"""Reads the command line after `--`: which launcher it is, behind which wrappers, and what it says about the job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.launch.launcher_registry import commands, modules, remote_starters
from ncclcheck.launch.line.env_line import Changes, applied, read_env
from ncclcheck.launch.line.launch_line import CommandLine, PlaceNotGivenError, ReadFile, Script
from ncclcheck.launch.line.python_line import is_python, read_python
from ncclcheck.launch.line.shell_line import SHELLS, ShellRun, read_shell
from ncclcheck.model.errors import UsageError

# They exec the command behind their own options, which are skipped.
_WRAPPERS = frozenset(
    {
        "env", "exec", "nice", "ionice", "nohup", "numactl", "taskset", "chrt", "setsid", "stdbuf", "time", "timeout",
        "sudo", "uv", "uvx", "poetry", "pdm", "hatch", "pixi", "conda", "mamba", "micromamba", "nsys", "ncu", "perf",
        "strace", "catchsegv", "apptainer", "singularity", "enroot", "busybox", "systemd-run", "tini", "dumb-init",
    }
)  # fmt: skip
_OWN = "ncclcheck"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_MODULE_OPTIONS = ("-m", "--module")


def read_command(words: Sequence[str], environ: Mapping[str, str], read: ReadFile) -> CommandLine:
    """Return what `words` say about the job. Raises UsageError where they contradict themselves or start other nodes.

    `read` gives the text of a file, or None where there is none. A command that is neither a launcher nor a wrapper
    before one is one process of the job that started us.
    """
    changes: dict[str, str | None] = {}
    for position, word in enumerate(words):
        if _ASSIGNMENT.fullmatch(word):
            variable, _, value = word.partition("=")
            changes[variable] = value
            continue
        found = _found(words, position, applied(environ, changes), read)
        if found is not None:
            return _with(found, changes)
    return CommandLine(environ=changes)


def _found(
    words: Sequence[str], position: int, environ: Mapping[str, str], read: ReadFile
) -> CommandLine | None:
    """Return the command that begins at `position`; None where that word only belongs to a wrapper before it."""
    rest, before = words[position:], words[position - 1] if position else ""
    name = rest[0].rpartition("/")[2]
    wrapped = words[0].rpartition("/")[2] in _WRAPPERS
    if name == "env" and (wrapped or position == 0):
        return _of_env(rest, environ, read)
    if name in remote_starters() and (wrapped or position == 0):
        raise UsageError(_behind(name))
    if is_python(name):
        return _of_python(rest, environ, read)
    if before in _MODULE_OPTIONS:
        return _of_module(rest, environ, read, uv=words[0].rpartition("/")[2] == "uv")
    if (begin := _launcher(name, rest)) is not None:
        surely = wrapped or not before.startswith("-")
        return _of_launcher(begin, rest, environ, read) if surely else _perhaps(begin, rest, environ, read)
    if name in SHELLS:
        run = read_shell(rest[1:], environ)
        return CommandLine() if run is None else _of_shell(name, run, environ, read)
    return CommandLine(None, Script(rest[0])) if name.endswith(".py") else None


def _launcher(name: str, rest: Sequence[str]) -> tuple[str, ...] | None:
    return next((begin for begin in commands() if (name, *rest[1 : len(begin)]) == begin), None)


def _of_launcher(
    begin: tuple[str, ...], words: Sequence[str], environ: Mapping[str, str], read: ReadFile
) -> CommandLine:
    return _not_help(commands()[begin](words[len(begin) :], environ, read, " ".join(begin)), begin)


def _perhaps(
    begin: tuple[str, ...], words: Sequence[str], environ: Mapping[str, str], read: ReadFile
) -> CommandLine | None:
    """Return the job of what may be a launcher, or only an option's value, as in `train --framework deepspeed`."""
    try:
        return _of_launcher(begin, words, environ, read)
    except UsageError:
        return None


def _with(line: CommandLine, changes: Changes) -> CommandLine:
    return CommandLine(line.launch, line.script, {**changes, **line.environ})


def _not_help(line: CommandLine | None, begin: Sequence[str]) -> CommandLine:
    if line is None:
        raise UsageError(f"'{' '.join(begin)} --help' starts no job: run it without ncclcheck")
    return line


def _behind(name: str) -> str:
    return (
        f"{name} starts the other nodes, and ncclcheck before it would check this one alone: put it behind, as in "
        f"'{name} [its options] ncclcheck preflight -- COMMAND'"
    )


def _of_env(words: Sequence[str], environ: Mapping[str, str], read: ReadFile) -> CommandLine:
    run = read_env(words[1:], environ)
    line = _with(read_command(run.words, applied(environ, run.changes), read), run.changes)
    if line.script is None or not run.folder:
        return line
    return replace(line, script=replace(line.script, folder=_joined(run.folder, line.script.folder)))


def _joined(folder: str, inner: str) -> str:
    return inner if inner.startswith("/") or not folder else f"{folder}/{inner}".rstrip("/")


def _of_python(words: Sequence[str], environ: Mapping[str, str], read: ReadFile) -> CommandLine:
    run = read_python(words[1:])
    if run.module == _OWN and "--" in run.rest:  # `watch` stays beside the command behind it
        return read_command(run.rest[run.rest.index("--") + 1 :], environ, read)
    if run.module is not None:
        found = _of_module((run.module, *run.rest), environ, read)
        return found or CommandLine(None, Script(run.module, is_module=True) if run.module else None)
    if run.script is None:
        return CommandLine()
    return _of_console_script(run.script, run.rest, environ, read) or CommandLine(None, Script(run.script))


def _of_module(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, *, uv: bool = False
) -> CommandLine | None:
    """Return the job of `python -m WORDS` of a launcher's module; None for any other, unless uv runs it."""
    for begin, reader in modules().items():
        if tuple(words[: len(begin)]) == begin:
            program = f"python -m {' '.join(begin)}"
            return _not_help(reader(words[len(begin) :], environ, read, program), program.split())
    return CommandLine(None, Script(words[0], is_module=True)) if uv else None


def _of_console_script(
    script: str, rest: Sequence[str], environ: Mapping[str, str], read: ReadFile
) -> CommandLine | None:
    """Return the job of `python /venv/bin/torchrun ...`, the launcher's own entry script."""
    begin = _launcher(script.rpartition("/")[2], (script, *rest))
    if begin is None:
        return None
    return _of_launcher(begin, (script, *rest), environ, read)


def _of_shell(name: str, run: ShellRun, environ: Mapping[str, str], read: ReadFile) -> CommandLine:
    """Return the job of `sh -c 'torchrun ...'`. Raises UsageError for a launcher in more than one command."""
    if run.words is not None:
        return read_command(run.words, environ, read)
    starter = run.names(remote_starters())
    if starter is not None:
        raise UsageError(_behind(starter))
    launcher = run.names([begin[0] for begin in (*commands(), *modules())])
    if launcher is not None:
        start = launcher if "." not in launcher else f"python -m {launcher}"
        raise PlaceNotGivenError(
            f"{start} is started inside {name} -c, and what the shell makes of that text is not known here: put "
            f"ncclcheck into it, as in \"{name} -c '... ncclcheck preflight -- {start} ...'\", or give --nnodes, "
            "--node-rank and --master-addr before '--'"
        )
    return CommandLine()
