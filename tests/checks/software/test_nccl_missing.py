"""NC516 nccl-missing."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NcclLibrary
from ncclcheck.model.image import TorchBuild
from ncclcheck.model.snapshot import Snapshot
from tests.checks.running import finding, run
from tests.fact_builders import GONE, some
from tests.image_builders import healthy_image, with_sections

NONE = Missing("absent", "this torch was built without CUDA")
FOUND = "/opt/libnccl.so.2"


def loading(*libraries: NcclLibrary, compiled: Fact[str] = "2.27.5") -> Snapshot:
    snapshot = healthy_image(torch=TorchBuild("12.8", compiled, ()))
    choice = some(snapshot.nodes[0].facts.nccl)
    return with_sections(snapshot, nccl=replace(choice, libraries=libraries))


def test_a_torch_without_cuda_is_told() -> None:
    found = finding("nccl-missing", healthy_image(torch=TorchBuild(NONE, NONE, NONE)))
    assert found.severity == "warning"
    assert "was built without CUDA" in found.summary


def test_a_torch_with_cuda_and_no_nccl_is_an_error() -> None:
    found = finding("nccl-missing", loading())
    assert found.severity == "error"
    assert "torch finds no NCCL library" in found.summary


def test_an_older_nccl_than_torch_was_compiled_with_is_an_error() -> None:
    older = NcclLibrary(FOUND, "2.26.2", "LD_LIBRARY_PATH", loaded_by_torch=True)
    found = finding("nccl-missing", loading(older))
    assert found.evidence[0].observed == "2.26.2"
    assert found.evidence[0].expected == "2.27.5 or newer"


def test_a_newer_one_passes_and_an_unknown_one_does_not() -> None:
    newer = NcclLibrary(FOUND, "2.28.9", "LD_LIBRARY_PATH", loaded_by_torch=True)
    silent = NcclLibrary(FOUND, GONE, "LD_LIBRARY_PATH", loaded_by_torch=True)
    assert run("nccl-missing", loading(newer)).outcome == "passed"
    assert run("nccl-missing", loading(silent)).outcome == "unknown"
    assert run("nccl-missing", loading(newer, compiled=GONE)).outcome == "unknown"


def test_one_that_cannot_be_loaded_is_an_error_that_names_the_file() -> None:
    why = Missing("error", f"{FOUND}: ended its process by signal 7 (Bus error) while it was loaded")
    found = finding("nccl-missing", loading(NcclLibrary(FOUND, why, "loader cache", loaded_by_torch=True)))
    assert found.severity == "error"
    assert f"does not work: {FOUND} ended its process by signal 7" in found.summary
