"""The topology file that `matrix` is compared with: of --topology, or the one of Slurm on this node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncclcheck.cli.files import read_text
from ncclcheck.facts.bounded_call import within
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.benchmarks.site_topology import SiteTopology
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.timeouts import USER_FILE_S

FILES = ("topology.yaml", "topology.conf")  # the first wins, as in Slurm
FOLDERS = ("/etc/slurm", "/run/slurm/conf")  # the second: what slurmd fetched from the controller
_OPTION = "--topology"
NOT_GIVEN = Missing("absent", "no topology of the site was given or found")


def site_topology(
    command: str,
    option_values: Mapping[str, Any],
    environ: Mapping[str, str],
    flags: LaunchFlags | None = None,
) -> Fact[SiteTopology]:
    """Return what the site says of its switches. Raises UsageError where a file that was named is no such file.

    A file that was found and cannot be used is Missing "error". A replay looks for none: this may be another site.
    Only node 0 judges, so no other node reads a file; `flags` places this process, None where no node is placed.
    """
    if command != "matrix" or (flags is not None and detect(environ, flags).node_rank > 0):
        return NOT_GIVEN
    file = option_values.get("topology")
    if file:
        from ncclcheck.measure.matrix.topology_file import (
            parse_topology,
        )  # PyYAML, which no other command needs

        return parse_topology(read_text(file, _OPTION), f"{_OPTION} {file}")
    if option_values.get("from_"):
        return NOT_GIVEN
    slurm_conf = environ.get("SLURM_CONF")
    found = within(USER_FILE_S, _find, ([str(Path(slurm_conf).parent)] if slurm_conf else []) + list(FOLDERS))
    if isinstance(found, Missing):
        return Missing(found.missing, f"a topology file in {' or '.join(FOLDERS)}: {found.detail}")
    return _read_found(found) if found else NOT_GIVEN


def _find(folders: list[str]) -> str:
    """Return the first topology file there; "" without any."""
    paths = (Path(folder) / name for folder in folders for name in FILES)
    return next((str(path) for path in paths if path.is_file()), "")


def _read_found(file: str) -> Fact[SiteTopology]:
    from ncclcheck.measure.matrix.topology_file import parse_topology

    try:
        return parse_topology(read_text(file, "the topology file"), file)
    except UsageError as error:
        return Missing("error", str(error))
