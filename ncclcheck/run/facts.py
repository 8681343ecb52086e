"""`ncclcheck facts`: what this node says of itself."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.facts.collect import FactsRequest, collect
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.report import SCHEMA_VERSION
from ncclcheck.model.saved import FactsDocument
from ncclcheck.run.context import host_name


def this_node(environ: Mapping[str, str], code_paths: tuple[str, ...]) -> FactsDocument:
    """The facts of this node, read now."""
    launch = detect(environ, LaunchFlags())
    facts = collect(FactsRequest(launch=launch, environment=environ, code_paths=code_paths))
    return FactsDocument(SCHEMA_VERSION, host_name(), facts)
