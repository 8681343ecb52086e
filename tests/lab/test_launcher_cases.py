"""Every odd start of the table gets the verdict that was written down for it, and COMMAND starts once per rank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.lab.launcher_cases import CASES
from tests.lab.launcher_starts import LauncherCase
from tests.lab.nodes import Lab
from tests.lab.openmpi import openmpi_skip_reason
from tests.lab.slurm import slurm_skip_reason

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.further]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_one_that_was_written_down(lab: Callable[..., Lab], case: LauncherCase) -> None:
    needed = {"srun": slurm_skip_reason, "sbatch": slurm_skip_reason, "mpirun": openmpi_skip_reason}
    for begin, reason in needed.items():
        if (case.name.startswith(begin) or case.name == "mpirun-in-an-allocation") and (why := reason()):
            pytest.skip(why)
    built = lab(case.nodes, ipv6=case.ipv6)
    with ExitStack() as stack:
        ended = case.start(built, stack)
    shown = "\n".join(map(str, ended.processes))
    assert {process.returncode for process in ended.processes} == case.exits, shown
    said = [line.split("started ")[1] for line in ended.text.splitlines() if line.startswith("started ")]
    assert sorted(said) == sorted(case.started), shown
    assert case.says in ended.text, shown
    if case.seen is not None:
        assert ended.report is not None, shown
        assert sum(node["status"] == "reported" for node in ended.report["nodes"]) == case.seen, shown
    if ended.report is not None:
        errors = {found["slug"] for found in ended.report["findings"] if found["severity"] == "error"}
        warnings = {found["slug"] for found in ended.report["findings"] if found["severity"] == "warning"}
        assert case.slugs <= errors | warnings, shown
        assert errors <= case.slugs, shown
    assert built.leftovers() == ()
