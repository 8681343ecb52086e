"""The record of a launcher: all that ncclcheck knows about one, declared in one file of `launchers/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.launch.line.launch_line import LaunchLine, LineReader
from ncclcheck.model.launch import Launch

Detect: TypeAlias = Callable[[Mapping[str, str]], "Launch | None"]
DescribeJob: TypeAlias = Callable[[Mapping[str, str]], "LaunchLine | None"]


class TaskCount(Struct, frozen=True):
    """The variable with the number of processes in the job, and the one that only a process of the job has."""

    variable: str
    set_in_tasks: str


class Launcher(Struct, frozen=True):
    """A program that starts the processes of a job, or another source that says which process of a job this is.

    Names of variables are exact, or a prefix that ends in `*`.

    - `name` is what reports and snapshots say (`Launch.source`); `label` is what the report's header shows.
    - `detect` returns the place of a process that the launcher started. Launchers are asked in the order of
      `precedence`, lowest first. `may_be_stale`: another shell may have left these variables, so it is asked last.
    - `node_count_source` names the launcher and its variable where two sources disagree about the number of nodes.
    - `variables` tell a process its place in the job. Facts keep them, and their values may differ between nodes.
    - `owned_prefixes` are the prefixes of all variables that the launcher sets. Their values may differ, too, but
      facts keep only those in `variables`: the rest can be anything, secrets included.
    - `rank_variables` differ between the ranks of one node.
    - `describe_job` reads the job of a launcher that has yet to start, from its environment.
    - `binds_cpus`: each rank may have CPUs of its own, so what one of them may use is not the node's share.
    - `set_for_all_ranks` is the command that gives all ranks the variable `{name}`.
    - `commands` and `modules` (`python -m`) are the words that begin its command line, with the reader of the rest.
    - `remote_starters` are its programs that start processes on other nodes: ncclcheck must stand behind them.
    """

    name: str
    label: str
    precedence: int = 0
    detect: Detect | None = None
    may_be_stale: bool = False
    node_count_source: str = ""
    variables: tuple[str, ...] = ()
    owned_prefixes: tuple[str, ...] = ()
    rank_variables: tuple[str, ...] = ()
    task_count: TaskCount | None = None
    describe_job: DescribeJob | None = None
    binds_cpus: bool = False
    set_for_all_ranks: str = ""
    commands: Mapping[tuple[str, ...], LineReader] = {}
    modules: Mapping[tuple[str, ...], LineReader] = {}
    remote_starters: tuple[str, ...] = ()
