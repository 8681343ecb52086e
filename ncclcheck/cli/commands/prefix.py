"""`ncclcheck preflight -- COMMAND...`: read the job's own command line, and run it (exec) if all checks pass."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.cli.benchmarks.command_mesh import command_mesh
from ncclcheck.cli.commands.handover import Inherited, hand_over, inherited
from ncclcheck.cli.dead_home import home_folder
from ncclcheck.cli.files import refuse_hung
from ncclcheck.cli.screen import write_error
from ncclcheck.facts.bounded_call import within
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.line.command_line import read_command
from ncclcheck.launch.line.env_line import applied
from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, PlaceNotGivenError, Script
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import PATH_S, USER_FILE_S

if TYPE_CHECKING:
    from ncclcheck.model.report import Advice
    from ncclcheck.run.options import RunOptions

_CONFIG_LIMIT_BYTES = 1 << 20
_NO_FLAGS = LaunchFlags()
_TOO_WIDE = ("/", "/tmp", "/home", "/root")  # folders of all sorts: only the script itself is compared there


class Prefixed(Struct, frozen=True):
    """The command that follows: its words and program file, the environment it had, and what was read of it.

    `environ` is what COMMAND will be started with, `inherited` what else it gets as we got it.
    """

    words: tuple[str, ...]
    program: str
    environ: dict[str, str]
    line: CommandLine
    inherited: Inherited

    @property
    def checked_environ(self) -> dict[str, str]:
        """What the job's processes will see: also what the command line changes itself (`env NAME=VALUE`)."""
        return applied(self.environ, self.line.environ)


def read_prefixed(
    words: Sequence[str], environ: Mapping[str, str], flags: LaunchFlags = _NO_FLAGS
) -> Prefixed:
    """Read COMMAND and find its program. Raises UsageError where it is missing or contradicts itself.

    Where it does not tell which node of the job this is, `flags` do, and nothing else is taken from it.
    """
    program = within(USER_FILE_S, shutil.which, words[0], path=environ.get("PATH", os.defpath))
    if isinstance(program, Missing):
        raise UsageError(f"-- {words[0]}: a folder of PATH is on a mount that hangs: {program.detail}")
    if program is None:
        raise UsageError(f"-- {words[0]}: {_why_no_program(words[0])}")
    environ = dict(environ)
    if "LC_CTYPE" in environ and b"LC_CTYPE" not in _names_at_start():
        del environ["LC_CTYPE"]  # Python's own, for a C locale (PEP 538)
    try:
        line = read_command(words, environ, _read)
    except PlaceNotGivenError:
        if flags.nnodes is None or flags.node_rank is None:
            raise
        line = CommandLine()
    return Prefixed(tuple(words), program, environ, line, inherited())


def _why_no_program(word: str) -> str:
    """Return why a word is no program, for people: a script that may not be executed is there all the same."""
    if os.sep in word and within(USER_FILE_S, os.path.isdir, word) is True:
        return "is a folder"
    if os.sep in word and within(USER_FILE_S, os.path.exists, word) is True:
        how = f"python {word}" if word.endswith(".py") else f"chmod +x {word}"
        return f"is there, but not executable: {how}"
    return "there is no such command on this node (looked at PATH)"


def before(run: RunOptions, prefixed: Prefixed, *, applies: bool) -> RunOptions:
    """Return the options with what COMMAND says of the job; its code is compared unless --code names paths.

    Raises UsageError where --hosts leaves out nodes on which COMMAND would start.
    """
    if run.head is not None and prefixed.line.launch is not None:
        _refuse_unchecked(run.head.hosts, prefixed.line.launch)
    return replace(
        run,
        line=prefixed.line.launch,
        mesh=run.mesh or command_mesh(prefixed.words),
        code_paths=run.code_paths or code_of(prefixed.line),
        applies=applies,
        starts=True,
        wants_documents=run.wants_documents or applies,
    )


def _refuse_unchecked(hosts: Sequence[str], line: LaunchLine) -> None:
    known = {name for host in hosts for name in (host, host.partition(".")[0])}
    unlisted = [host for host in line.remote_hosts if host not in known]
    if unlisted:
        raise UsageError(
            f"{line.program} starts {', '.join(line.remote_hosts)}, and --hosts does not name {', '.join(unlisted)}: "
            f"name them all, as that list does: --hosts {','.join(line.remote_hosts)}"
        )
    least = line.min_nodes or line.nnodes
    if least > len(hosts):
        raise UsageError(
            f"{line.program} is for {least} nodes, and --hosts names {len(hosts)}: name them all"
        )


def code_of(line: CommandLine) -> tuple[str, ...]:
    """Return the paths to compare between nodes: the script's folder, or the module's top package."""
    script = line.script
    if script is None:
        return ()
    return _of_module(script) if script.is_module else _of_file(script)


def _of_file(script: Script) -> tuple[str, ...]:
    file = PurePath(script.folder, script.name)
    too_wide = {*_TOO_WIDE, home_folder()}
    return (str(file),) if within(PATH_S, _resolved, file.parent) in too_wide else (str(file.parent),)


def _of_module(script: Script) -> tuple[str, ...]:
    """Return the path of a module in the working folder; an installed one is compared by its package's version."""
    top = PurePath(script.folder, script.name.split(".")[0])
    paths = (top, top.with_name(f"{top.name}.py"))
    return tuple(str(path) for path in paths if within(PATH_S, _exists, path) is not False)[:1]


def _resolved(folder: PurePath) -> str:
    return str(Path(folder).resolve())


def _exists(path: PurePath) -> bool:
    return Path(path).exists()


def _read(file: str) -> str | None:
    refuse_hung(file, "--")
    path = Path(file)
    with suppress(RuntimeError):  # ~ of a user whom nobody knows is a file's name
        path = path.expanduser()
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            return stream.read(_CONFIG_LIMIT_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error


def become(prefixed: Prefixed, settings: Sequence[tuple[str, str | None]]) -> NoReturn:
    """Replace this process by COMMAND: same words, folder, standard streams and environment, plus `settings`.

    Nothing of ours stays: no descriptor (so the master port is free), no signal, no raised limit, no child to wait for.
    Raises UsageError where the kernel refuses to start it.
    """
    environ = {**prefixed.environ, **{name: value for name, value in settings if value is not None}}
    for name, value in settings:
        if value is None:
            environ.pop(name, None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    hand_over(prefixed.inherited)
    try:
        os.execve(prefixed.program, prefixed.words, environ)  # noqa: S606 (the very purpose)
    except OSError as error:
        raise UsageError(f"{prefixed.words[0]} cannot be started: {error.strerror or error}") from error


def advised_here(advice: Advice, host: str) -> list[tuple[str, str | None]]:
    """Name and value (None: unset it) of what is advised for this host."""
    return [
        (setting.name, setting.value) for setting in advice.env if not setting.hosts or host in setting.hosts
    ]


def say_applied(settings: Sequence[tuple[str, str | None]]) -> None:
    """Print on standard error what `--apply` changes."""
    for name, value in settings:
        write_error(f"--apply: unset {name}" if value is None else f"--apply: {name}={value}")
    if not settings:
        write_error("--apply: nothing is advised; the environment stays as it is")


def say_refused(reasons: Sequence[str]) -> None:
    """Print on standard error, on every node, what `--apply` rejects from the report."""
    for reason in reasons:
        write_error(f"--apply: refused: {reason}")


def _names_at_start() -> frozenset[bytes]:
    """Return the names of the environment that this process was started with."""
    try:
        return frozenset(
            word.partition(b"=")[0] for word in Path("/proc/self/environ").read_bytes().split(b"\0")
        )
    except OSError:
        return frozenset({b"LC_CTYPE"})
