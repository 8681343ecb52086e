"""NC513 packages-inconsistent."""

from __future__ import annotations

from tests.checks.running import finding, run
from tests.fact_builders import GONE
from tests.image_builders import healthy_image

NCCL = "torch 2.9.0 has requirement nvidia-nccl-cu12==2.27.5, but you have nvidia-nccl-cu12 2.28.9."
OTHER = "jupyter 1.0.0 requires notebook, which is not installed."


def test_a_complaint_about_torch_is_an_error_and_any_other_a_warning() -> None:
    found = run("packages-inconsistent", healthy_image(packages=(OTHER, NCCL))).findings
    assert [(one.severity, one.evidence[0].observed) for one in found] == [
        ("error", NCCL),
        ("warning", OTHER),
    ]


def test_a_module_that_cannot_be_imported_is_an_error() -> None:
    found = finding("packages-inconsistent", healthy_image(imports={"netifaces": "ImportError: no"}))
    assert "netifaces cannot be imported" in found.summary


def test_without_pip_it_is_not_known() -> None:
    assert run("packages-inconsistent", healthy_image(packages=GONE)).outcome == "unknown"
    assert run("packages-inconsistent", healthy_image(imports=GONE)).outcome == "unknown"
