"""`--from`: the report of a saved run, without cluster, GPU or torch."""

from __future__ import annotations

from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.run.conclude import judge
from ncclcheck.run.options import RunOptions


def replay(saved: Saved, options: RunOptions) -> Report:
    """The report that the saved run gives under these options; under the run's own options, the identical one."""
    return judge(saved, options)
