"""What a job's own command line says about the job: the words between `--` and the end of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.errors import UsageError

Rendezvous: TypeAlias = Literal["static", "c10d"]


class PlaceNotGivenError(UsageError):
    """The command line makes a job of several nodes and does not tell which of them this is: flags may."""


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """The program of a rank: a file as the command line names it, or a module for `python -m`.

    `folder`: where the command line changes to before it runs ("": it stays).
    """

    name: str
    is_module: bool = False
    folder: str = ""


class LaunchLine(Struct, frozen=True, forbid_unknown_fields=True):
    """The job that a launcher's command line makes, one launcher process per node.

    `program` is the launcher, as it is named to the user. None: not said. With rendezvous "c10d" no node has a
    rank: the nodes meet in a store on the host of `master_addr`, and `hosts_store` says whether this node was told to
    serve it (`--rdzv-conf is_host=1`). `min_nodes` below `nnodes`: torch starts with fewer when no more come.
    """

    program: str
    nnodes: int = 1
    min_nodes: int | None = None
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None
    nproc_per_node: int | None = None
    rendezvous: Rendezvous = "static"
    rendezvous_id: str = ""
    hosts_store: bool | None = None
    local_addr: str | None = None
    remote_hosts: tuple[str, ...] = ()  # nodes that the launcher reaches by itself, over ssh


class CommandLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A command line: the job it makes (None: one process, of whatever launcher started us), and what it runs.

    `environ`: the variables that it sets itself (`env NAME=VALUE torchrun ...`), or takes away (None: `env -u NAME`).
    """

    launch: LaunchLine | None = None
    script: Script | None = None
    environ: dict[str, str | None] = {}


# Returns the text of a file, or None where there is none.
ReadFile: TypeAlias = Callable[[str], "str | None"]
# Reads the words behind a launcher's name, the environment, files, and the launcher as it is named to the user.
LineReader: TypeAlias = Callable[[Sequence[str], Mapping[str, str], ReadFile, str], "CommandLine | None"]
