"""`preflight --image` as it is used in the build of an image, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.image_run import refuse_nodes
from ncclcheck.model.errors import UsageError
from ncclcheck.run.options import RunOptions
from tests.cli.command_line import clean_environment, ncclcheck
from tests.facts.compiled import nccl_library, needs_compiler, shared_library

ROOT = Path(__file__).parents[2]
TORCH = """
class version:
    cuda = "12.8"
class _C:
    _cuda_getArchFlags = staticmethod(lambda: "sm_80 sm_90 compute_90")
    _nccl_version = staticmethod(lambda: 2 << 32 | 27 << 16 | 5)
"""


def site_with_torch(folder: Path) -> str:
    """A folder of Python packages with a torch that was built with CUDA and NCCL 2.27.5, and this NCCL."""
    library = folder / "nvidia/nccl/lib/libnccl.so.2"
    nccl_library(library, 22705)
    flags = ("-Wl,--no-as-needed", str(library), "-Wl,--disable-new-dtags")
    path = "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib"
    shared_library(folder / "torch/lib/libtorch_cuda.so", "int torch;", *flags, path)
    (folder / "torch/__init__.py").write_text(TORCH)
    (folder / "torch/version.py").write_text("__version__ = '2.9.0'\ncuda = '12.8'\n")
    return str(folder)


def image(site: str, *arguments: str, **environ: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON report of an image whose packages are in the folder `site`."""
    command = [
        sys.executable,
        "-m",
        "ncclcheck",
        "preflight",
        "--image",
        "--format",
        "json",
        "-q",
        *arguments,
    ]
    path = os.pathsep.join([site, str(ROOT)])
    done = subprocess.run(
        command,
        env={**clean_environment(PYTHONPATH=path), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, json.loads(done.stdout)


def found(report: dict[str, Any]) -> dict[str, str]:
    return {finding["slug"]: finding["severity"] for finding in report["findings"]}


def outcome(report: dict[str, Any], slug: str) -> str:
    return next(str(check["outcome"]) for check in report["checks"] if check["slug"] == slug)


@pytest.mark.slow
@needs_compiler
def test_an_image_is_judged_for_the_gpus_of_its_policy_and_by_what_is_baked_in(tmp_path: Path) -> None:
    site = site_with_torch(tmp_path / "site")
    policy = tmp_path / "site.toml"
    policy.write_text('[versions]\ntorch = "2.9.0"\ndriver = ">=570"\n[gpu]\ncompute_capability = "9.0"\n')
    code, report = image(site, "--expect", str(policy), "--ignore", "verbs-incomplete,packages-inconsistent")
    assert (code, found(report), report["of"]) == (0, {}, "image")
    assert outcome(report, "nccl-missing") == "passed"
    assert outcome(report, "arch-not-built") == "passed"
    assert outcome(report, "software-unexpected") == "passed"
    assert outcome(report, "node-unexpected") == "not_applicable"
    assert outcome(report, "shm-small") == "not_applicable"
    assert report["nccl"] == []
    facts = report["nodes"][0]["facts"]
    for section in ("interfaces", "gpus", "limits", "rdma", "pci", "launch", "names"):
        assert facts[section]["missing"] == "absent", section
    assert facts["nccl"]["asked"]["missing"] == "absent"
    stubs = tmp_path / "cuda/lib64/stubs"
    stubs.mkdir(parents=True)
    (stubs / "libcuda.so.1").write_bytes(b"stub")
    policy.write_text('[gpu]\ncompute_capability = ["9.0", "10.0", "12.0"]\n')
    code, report = image(
        site,
        "--expect",
        str(policy),
        "--require",
        "shm-small",
        NCCL_IB_DISABLE="yes",
        NCCL_SOKET_IFNAME="eth0",
        LD_LIBRARY_PATH=str(stubs),
    )
    assert code == 1
    assert {"cuda-stub", "arch-not-built", "env-bad-value", "env-unknown"} <= set(found(report))
    assert any("shm-small did not run (not applicable" in reason for reason in report["verdict"]["reasons"])


@pytest.mark.slow
@needs_compiler
def test_what_needs_hardware_cannot_be_required_of_an_image(tmp_path: Path) -> None:
    site = site_with_torch(tmp_path)
    arguments = ("--require", "gpu-count", "--ignore", "NC5,NC6,NC7", "--select", "NC4,exception-expired")
    code, report = image(site, *arguments)
    assert code == 3
    assert "the required check gpu-count did not run (not applicable" in report["verdict"]["reasons"][0]


def test_an_image_has_no_place_among_nodes() -> None:
    refuse_nodes(RunOptions("preflight"))
    with pytest.raises(UsageError, match="leave out what places a run on nodes"):
        refuse_nodes(RunOptions("preflight", meet_in="/tmp/x"))
    done = ncclcheck("preflight", "--image", "--node-rank", "1")
    assert (done.code, "--image judges an image" in done.err) == (2, True)
