"""The folder of a soak as a run to be judged: also of one that still runs, or was killed."""

from __future__ import annotations

from datetime import datetime, timezone

from msgspec.structs import replace

from ncclcheck.bench.soak.series_folder import lines_in, nodes_in, saved_soak
from ncclcheck.cli.documents import SAVED_KIND
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import SCHEMA_VERSION, Report
from ncclcheck.model.saved import Saved
from ncclcheck.report.build import this_tool


def report_of_folder(folder: str) -> Report:
    """Return the report of the series in the folder. Raises UsageError."""
    from ncclcheck.cli.request import run_options
    from ncclcheck.run.replay import replay

    judge, nodes = lines_in(folder), nodes_in(folder)
    if isinstance(judge, Missing):
        raise UsageError(f"report {folder}: {judge.detail}")
    if isinstance(nodes, Missing):
        raise UsageError(f"report {folder}: {nodes.detail}")
    soak = judge.result()
    created = datetime.fromtimestamp(soak.began, timezone.utc).isoformat(timespec="seconds")
    saved = Saved(
        schema_version=SCHEMA_VERSION,
        kind=SAVED_KIND,
        tool=this_tool(),
        command="soak",
        created=created,
        elapsed_s=soak.seconds,
        interrupted=False,
        snapshot=replace(nodes, bench=saved_soak(judge)),
    )
    return replay(saved, run_options("soak", {})).report
