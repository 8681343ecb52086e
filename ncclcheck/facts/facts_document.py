"""`ncclcheck facts`: what this node, or a recorded one, says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ncclcheck.facts.network.names import host_name
from ncclcheck.facts.node_facts import collect
from ncclcheck.facts.recorded import read_recorded
from ncclcheck.facts.section import FactsRequest
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import SCHEMA_VERSION
from ncclcheck.model.saved import FactsDocument


def this_node(
    environ: Mapping[str, str],
    code_paths: tuple[str, ...],
    data_paths: tuple[str, ...] = (),
    shared_paths: tuple[str, ...] = (),
) -> FactsDocument:
    """Return the facts of this node, read now; of `--data` and `--shared-dir` what a node alone sees of them."""
    launch = detect(environ, LaunchFlags())
    request = FactsRequest(
        launch=launch,
        environment=environ,
        code_paths=code_paths,
        data_paths=data_paths,
        shared_paths=shared_paths,
    )
    facts = collect(request)
    return FactsDocument(SCHEMA_VERSION, host_name(), facts)


def recorded_machine(root: str) -> FactsDocument:
    """Return the facts of the machine recorded below `root`. Raises UsageError when that is no folder."""
    try:
        recorded = read_recorded(Path(root))
    except (OSError, ValueError, RuntimeError) as error:  # before Python 3.13 a ring of links gives the last
        error_text = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"--root {root}: {error_text}") from error
    return FactsDocument(SCHEMA_VERSION, recorded.host, recorded.facts)
