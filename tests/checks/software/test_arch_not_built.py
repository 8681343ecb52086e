"""NC508 arch-not-built."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.software.arch_not_built import runs_machine_code, runs_ptx
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuDriver, TorchGpus
from ncclcheck.model.policy.expected import Expectation, Expected, Profile, Text
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_gpu
from tests.image_builders import healthy_image
from tests.policies import with_policy


def built(*architectures: str) -> Snapshot:
    """node02 has a torch that was built for those."""
    return with_facts(cluster(4), "node02", torch_gpus=TorchGpus(8, architectures))


@pytest.mark.parametrize(
    ("capability", "flags", "machine_code", "ptx"),
    [
        ("9.0", ("sm_80", "sm_90"), True, False),
        ("8.6", ("sm_80",), True, False),
        ("8.0", ("sm_86",), False, False),
        ("9.0", ("sm_90a",), True, False),
        ("10.3", ("sm_100a", "sm_100"), True, False),
        ("10.3", ("sm_100a",), False, False),
        ("10.3", ("sm_100f",), True, False),
        ("12.0", ("sm_90", "compute_90"), False, True),
        ("7.0", ("sm_80", "compute_80"), False, False),
        ("10.0", ("compute_90a",), False, False),
        ("9.0", ("gfx942", "sm_x"), False, False),
        ("9.0", (), False, False),
    ],
)
def test_what_runs_on_which_gpu(
    capability: str, flags: tuple[str, ...], machine_code: bool, ptx: bool
) -> None:
    assert runs_machine_code(capability, flags) is machine_code
    assert runs_ptx(capability, flags) is ptx


def test_machine_code_for_every_gpu_is_silent() -> None:
    assert is_silent("arch-not-built", cluster(4))


def test_a_torch_without_code_for_a_gpu_is_an_error() -> None:
    found = finding("arch-not-built", built("sm_70", "sm_80"))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "is of 9.0, torch has sm_70, sm_80" in found.summary


def test_only_ptx_is_a_warning_and_none_for_a_driver_that_cannot_compile_it() -> None:
    assert finding("arch-not-built", built("sm_80", "compute_80")).severity == "warning"
    older = with_facts(built("sm_80", "compute_80"), "node02", gpu_driver=GpuDriver("535.1", "12.2", 0.1))
    assert finding("arch-not-built", older).severity == "error"


def test_one_other_gpu_on_a_node_is_named() -> None:
    assert (
        "GPU 3 ("
        in finding("arch-not-built", with_gpu(cluster(2), "node01", 3, compute_capability="12.0")).summary
    )


def test_what_was_not_read_is_unknown() -> None:
    assert run("arch-not-built", with_facts(cluster(4), "node02", torch_gpus=GONE)).outcome == "unknown"
    assert (
        run("arch-not-built", with_gpu(cluster(4), "node02", 3, compute_capability=GONE)).outcome == "unknown"
    )


def test_no_gpu_raises_no_question() -> None:
    absent = Missing("absent", "no driver")
    assert (
        run("arch-not-built", everywhere(cluster(2), gpus=absent, torch_gpus=absent)).outcome
        == "not_applicable"
    )


def expecting(capability: str, snapshot: Snapshot, profile: str = "") -> Snapshot:
    """The snapshot whose policy expects GPUs of that capability, on node02 only where a profile is named."""
    demand = Expectation("gpu.compute_capability", Text((capability,)), "policy.toml:3", profile)
    profiles = (Profile(profile, ("node02",), (), "policy.toml:1"),) if profile else ()
    return replace(snapshot, expected=Expected((demand,), profiles))


def test_gpus_that_are_only_expected_count_too() -> None:
    absent = Missing("absent", "no driver")
    bare = everywhere(cluster(2), gpus=absent, torch_gpus=TorchGpus(0, ("sm_80", "sm_90")))
    assert run("arch-not-built", bare).outcome == "not_applicable"
    found = finding("arch-not-built", expecting("12.0", bare))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "GPUs of 12.0 are expected (policy.toml:3), torch has sm_80, sm_90" in found.summary
    assert finding("arch-not-built", expecting("12.0", bare, "new")).hosts == ("node02",)
    assert run("arch-not-built", expecting("9.0", bare)).outcome != "found"


def test_what_torch_has_for_expected_gpus_must_be_known() -> None:
    late = with_facts(expecting("9.0", cluster(2)), "node02", torch_gpus=GONE)
    assert run("arch-not-built", late).outcome == "unknown"


@pytest.mark.parametrize(
    ("capabilities", "severity", "words"),
    [
        ('"7.0"', "error", "has no code for its GPUs: the policy is for 7.0 (site.toml, line 2)"),
        ('["9.0", "12.0"]', "warning", "has only PTX for its GPUs: the policy is for 12.0"),
    ],
)
def test_an_image_is_judged_by_the_gpus_of_its_policy(capabilities: str, severity: str, words: str) -> None:
    text = f"[gpu]\ncompute_capability = {capabilities}\n"
    found = finding("arch-not-built", with_policy(healthy_image(), text))
    assert found.severity == severity
    assert words in found.summary


def test_an_image_that_has_the_code_passes_and_an_unread_one_does_not() -> None:
    text = '[gpu]\ncompute_capability = ["8.0", "9.0"]\n'
    assert is_silent("arch-not-built", with_policy(healthy_image(), text))
    assert run("arch-not-built", with_policy(healthy_image(torch=GONE), text)).outcome == "unknown"
    assert run("arch-not-built", healthy_image()).outcome == "not_applicable"
