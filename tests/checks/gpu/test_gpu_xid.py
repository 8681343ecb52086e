"""NC405 gpu-xid."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuLog, LoggedError
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_gpu

FELL_OFF = LoggedError(
    "Xid", 79, "0000:03:00.0", 300.0, "NVRM: Xid (PCI:0000:03:00): 79, pid=1, GPU has fallen off the bus."
)


def logged(*errors: LoggedError) -> Snapshot:
    """node02 logged them, and its driver does not tell a recovery action."""
    snapshot = with_facts(cluster(4), "node02", gpu_log=GpuLog("/dev/kmsg", errors))
    return with_gpu(snapshot, "node02", 3, recovery_action=Missing("unsupported", "old driver"))


def test_a_log_without_errors_is_silent() -> None:
    assert is_silent("gpu-xid", cluster(4))


def test_an_error_is_named_with_address_age_class_and_words() -> None:
    found = finding("gpu-xid", logged(FELL_OFF))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "Xid 79 of 0000:03:00.0, 5 min ago" in found.summary
    assert "GPU has fallen off the bus" in found.summary
    assert "the node must be rebooted" in found.summary


@pytest.mark.parametrize(
    ("number", "severity"),
    [(48, "error"), (95, "error"), (74, "error"), (31, "info"), (94, "info"), (999, "warning")],
)
def test_the_class_of_an_xid_decides(number: int, severity: str) -> None:
    assert finding("gpu-xid", logged(replace(FELL_OFF, number=number))).severity == severity


@pytest.mark.parametrize("number", [43, 45, 63])
def test_what_nvidia_says_to_ignore_is_silent(number: int) -> None:
    assert is_silent("gpu-xid", logged(replace(FELL_OFF, number=number)))


def test_an_unknown_number_is_said_to_be_unknown() -> None:
    assert "did not list it" in finding("gpu-xid", logged(replace(FELL_OFF, number=999))).summary


def test_a_driver_that_says_no_recovery_is_needed_makes_it_a_warning() -> None:
    recovered = with_gpu(logged(FELL_OFF), "node02", 3, recovery_action="none")
    assert finding("gpu-xid", recovered).severity == "warning"


def test_a_fatal_switch_error_is_an_error_and_another_is_not() -> None:
    fatal = LoggedError("SXid", 24007, "0000:c4:00.0", 9.0, "SXid (PCI:0000:c4:00.0): 24007, Fatal, Link 12")
    assert finding("gpu-xid", logged(fatal)).severity == "error"
    harmless = replace(fatal, text=fatal.text.replace("Fatal", "Non-fatal"))
    assert is_silent("gpu-xid", logged(harmless))
    unknown = replace(fatal, number=29999, text="SXid (PCI:0000:c4:00.0): 29999, Link 12 did something")
    assert finding("gpu-xid", logged(unknown)).severity == "warning"


def test_a_log_that_may_not_be_read_is_unknown() -> None:
    result = run("gpu-xid", without(cluster(4), "node03", "gpu_log", Missing("denied", "/dev/kmsg")))
    assert (result.outcome, "node03" in result.reason) == ("unknown", True)


def test_nodes_without_a_driver_are_not_asked() -> None:
    absent = Missing("absent", "no driver")
    assert run("gpu-xid", everywhere(cluster(2), gpus=absent, gpu_log=GONE)).outcome == "not_applicable"
