"""What tests share: nodes to run on, and an honest account of what was not tested."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests import stolen_time
from tests.lab import forked
from tests.lab.namespaces import lab_skip_reason
from tests.lab.nodes import Lab
from tests.lab.openmpi import OpenMpi, openmpi_skip_reason
from tests.lab.slurm import Slurm, slurm_skip_reason

_OF_WHOLE_FILE = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)$", re.MULTILINE)
_RUNS = 3
_COUNTS = "NCCLCHECK_TEST_COUNTS"  # set by scripts/test
_FAILED = "NCCLCHECK_TEST_FAILED"  # set by scripts/test
_DISTURBED = "failed while cores were taken away"


def pytest_configure() -> None:
    """A terminated run tears its labs down, as an interrupted one does. Nothing is garbage while tests are read."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.disable()


def pytest_collection_finish() -> None:
    """The tests themselves are no garbage either: no collection looks at them again."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """End what starts the processes of the labs."""
    forked.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file in which `-m` selects no test: some import torch or a browser's driver, which takes seconds.

    Only for a plain `A and not B`. The text of a file shows its marks: `mark.A` for a test, `pytestmark` for all tests.
    """
    expression: str = config.option.markexpr
    if not expression or collection_path.suffix != ".py" or "(" in expression or " or " in expression:
        return None
    text = collection_path.read_text(encoding="utf-8")
    whole = "".join(_OF_WHOLE_FILE.findall(text))
    for term in expression.split(" and "):
        mark = term.removeprefix("not ").strip()
        unwanted = f"mark.{mark}" in whole if term.startswith("not ") else f"mark.{mark}" not in text
        if unwanted and collection_path.name.startswith("test_"):
            return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `lab` where no nodes can be built, with the reason.

    And each mark stands in the text of the file that has such a test: `pytest_ignore_collect` relies on it.
    """
    for mark in ("alone", "further", "lab", "slow"):
        for path in {item.path for item in items if item.get_closest_marker(mark)}:
            if f"mark.{mark}" not in path.read_text(encoding="utf-8"):
                raise pytest.UsageError(f"{path}: a test is marked {mark}, and `-m {mark}` would not find it")
    marked = [item for item in items if item.get_closest_marker("lab")]
    if marked and (reason := lab_skip_reason()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A further case of what another test holds is left out, and that is said, once the time for such cases is over."""
    until = os.environ.get("NCCLCHECK_TEST_FURTHER_UNTIL")
    if until and item.get_closest_marker("further") and time.time() > float(until):
        pytest.skip("a further case, and no time was left for it")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test of speed or of nodes that failed while the host took the cores away runs again, twice at most."""
    if not any(item.get_closest_marker(mark) for mark in ("alone", "lab")):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(_RUNS):
        meter = stolen_time.read()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        share = meter.share()
        if not any(report.failed for report in reports) or share < stolen_time.MUCH:
            break
        item.user_properties.append((_DISTURBED, f"{share:.0%} of the cores: {item.nodeid}"))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not tested and why, one line per reason, and what failed while the host took cores away."""
    counts = os.environ.get(_COUNTS)
    if counts and not hasattr(
        terminalreporter.config, "workerinput"
    ):  # a controller has those of its workers
        _add_counts(Path(counts), terminalreporter.stats)
        if failed := os.environ.get(_FAILED):
            _add_failed(Path(failed), terminalreporter.stats)
    ended = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    properties = [pair for report in ended if report.when == "call" for pair in report.user_properties]
    if disturbed := [str(text) for name, text in properties if name == _DISTURBED]:
        terminalreporter.section("failed while the host gave the cores to others, and ran again")
        for text in disturbed:
            terminalreporter.write_line(text)
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[why.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("not tested here")
        for why, count in reasons.most_common():
            terminalreporter.write_line(f"{count} test{'s' if count > 1 else ''}: {why}")


def _add_counts(path: Path, stats: Mapping[str, Sequence[object]]) -> None:
    """Add this part's numbers of passed, failed and skipped tests to the file that scripts/test sums up."""
    kinds = (("passed",), ("failed", "error"), ("skipped", "xfailed"))
    numbers = [sum(len(stats.get(kind, ())) for kind in outcome) for outcome in kinds]
    with path.open("a") as counts:
        counts.write(" ".join(map(str, numbers)) + "\n")


def _add_failed(path: Path, stats: Mapping[str, Sequence[pytest.TestReport]]) -> None:
    """Add the names of this part's failed tests, one per line, to the file whose tests scripts/test runs again."""
    with path.open("a") as names:
        for report in (*stats.get("failed", ()), *stats.get("error", ())):
            names.write(report.nodeid + "\n")


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter that runs ncclcheck in tests: the one that runs them."""
    return sys.executable


@pytest.fixture
def lab() -> Iterator[Callable[..., Lab]]:
    """The builder of the test's labs, which are taken down after it.

    For example `four = lab(4)`, `lab(2, docker=True)`.
    """
    with ExitStack() as stack:

        def build(
            count: int = 4, *, subnet: str = "10.78.0", ipv6: bool = False, docker: bool = False
        ) -> Lab:
            return stack.enter_context(Lab(count, subnet=subnet, ipv6=ipv6, docker=docker))

        yield build


@pytest.fixture
def slurm() -> Iterator[Callable[..., Slurm]]:
    """Starts a Slurm cluster over a lab's nodes: `slurm(four).srun([...])`. Further arguments are lines of slurm.conf.

    Skips where Slurm is not installed.
    """
    if reason := slurm_skip_reason():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda nodes, *further: stack.enter_context(Slurm(nodes, further))


@pytest.fixture
def openmpi() -> Iterator[Callable[[Lab], OpenMpi]]:
    """Makes a lab's nodes ready for mpirun: `openmpi(four).mpirun([...])`. Skips where it is not installed."""
    if reason := openmpi_skip_reason():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda nodes: stack.enter_context(OpenMpi(nodes))
