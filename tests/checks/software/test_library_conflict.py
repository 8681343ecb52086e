"""NC505 library-conflict."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import NcclLibrary
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_facts, with_silent
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, LIBRARY, software, some

TORCHS = NcclLibrary(LIBRARY, "2.27.5", "torch (DT_RPATH of libtorch_cuda.so)", True)
SYSTEMS = NcclLibrary("/usr/lib/x86_64-linux-gnu/libnccl.so.2", "2.21.5", "loader cache")
MODULES = NcclLibrary("/opt/nccl/lib/libnccl.so.2", "2.21.5", "LD_LIBRARY_PATH")


def with_libraries(snapshot: Snapshot, host: str, *libraries: NcclLibrary) -> Snapshot:
    choice = some(node(snapshot, host).facts.nccl)
    return with_facts(snapshot, host, nccl=replace(choice, libraries=libraries))


def test_a_second_copy_of_the_same_version_is_no_conflict() -> None:
    same = replace(SYSTEMS, version="2.27.5")
    assert is_silent("library-conflict", with_libraries(cluster(4), "node02", TORCHS, same))


def test_another_version_in_reach_is_a_warning_that_names_both_files_and_ways() -> None:
    found = finding("library-conflict", with_libraries(cluster(4), "node02", TORCHS, SYSTEMS, MODULES))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    for text in (
        "2.27.5",
        "2.21.5",
        "loader cache",
        "LD_LIBRARY_PATH",
        TORCHS.path,
    ):
        assert text in found.summary
    assert [evidence.source for evidence in found.evidence] == [TORCHS.path, SYSTEMS.path, MODULES.path]


def test_equal_nodes_share_one_finding() -> None:
    snapshot = cluster(4)
    for host in ("node01", "node02", "node03", "node04"):
        snapshot = with_libraries(snapshot, host, TORCHS, SYSTEMS)
    assert len(finding("library-conflict", snapshot).hosts) == 4


def test_a_preloaded_library_older_than_torch_was_built_for_is_an_error() -> None:
    preloaded = NcclLibrary("/opt/old/libnccl.so.2", "2.21.5", "LD_PRELOAD", True)
    packaged = replace(TORCHS, loaded_by_torch=False)
    found = finding("library-conflict", with_libraries(cluster(2), "node01", preloaded, packaged))
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "LD_PRELOAD" in found.summary
    assert "built for" in found.summary


def test_the_systems_behind_torchs_own_is_for_information() -> None:
    """NVIDIA's CUDA images have one, beside which torch's wheel is installed."""
    found = finding("library-conflict", with_libraries(cluster(2), "node01", TORCHS, SYSTEMS))
    assert found.severity == "info"
    assert "loader cache gives 2.21.5" in found.summary


def test_a_newer_one_than_torch_was_built_for_is_for_information_and_a_newer_patch_is_none() -> None:
    newer = replace(TORCHS, version="2.29.7")
    assert finding("library-conflict", with_libraries(cluster(2), "node01", newer)).severity == "info"
    beside = finding("library-conflict", with_libraries(cluster(2), "node01", newer, MODULES))
    assert beside.severity == "warning"
    assert "LD_LIBRARY_PATH gives 2.21.5" in beside.summary
    patched = replace(TORCHS, version="2.27.7")
    assert is_silent("library-conflict", with_libraries(cluster(2), "node01", patched))


def test_a_library_that_does_not_answer_leaves_it_open() -> None:
    broken = replace(SYSTEMS, version=Missing("timeout", "did not come to an end"))
    result = run("library-conflict", with_libraries(cluster(2), "node01", TORCHS, broken))
    assert result.outcome == "unknown"
    assert "did not come to an end" in result.reason


def test_a_library_of_torch_that_cannot_be_loaded_is_an_error() -> None:
    broken = replace(
        MODULES, version=Missing("error", "cannot be loaded: file too short"), loaded_by_torch=True
    )
    found = finding(
        "library-conflict",
        with_libraries(cluster(4), "node02", broken, replace(TORCHS, loaded_by_torch=False)),
    )
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "file too short" in found.summary
    slow = replace(broken, version=Missing("timeout", "no answer in 5 s"))
    assert run("library-conflict", with_libraries(cluster(4), "node02", slow)).outcome == "unknown"


def test_a_torch_whose_nccl_is_not_told_leaves_it_open() -> None:
    unknown = everywhere(cluster(2), software=software(torch_nccl=Missing("unsupported", "pins none")))
    assert run("library-conflict", unknown).outcome == "unknown"


def test_libraries_that_were_not_looked_for_leave_it_open() -> None:
    choice = some(node(cluster(2), "node01").facts.nccl)
    unread = with_facts(cluster(2), "node01", nccl=replace(choice, libraries=GONE))
    assert run("library-conflict", unread).outcome == "unknown"


def test_a_torch_without_cuda_loads_none() -> None:
    snapshot = cluster(2)
    for host in ("node01", "node02"):
        snapshot = with_libraries(snapshot, host, SYSTEMS, replace(MODULES, version="2.28.9"))
    assert run("library-conflict", snapshot).outcome == "not_applicable"


def test_a_silent_node_leaves_it_open() -> None:
    assert run("library-conflict", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_that_does_not_work_is_an_error_that_names_the_file() -> None:
    """Damaged, or no NCCL at all; behind torch's own, which works, it waits for another program."""
    for kind in ("error", "unsupported"):
        damaged = replace(TORCHS, version=Missing(kind, f"{TORCHS.path}: cannot be loaded: file too short"))
        found = finding("library-conflict", with_libraries(cluster(2), "node01", damaged))
        assert (found.severity, found.hosts) == ("error", ("node01",))
        assert f"{TORCHS.path}) does not work: cannot be loaded: file too short" in found.summary
    behind = replace(
        MODULES, version=Missing("error", f"{MODULES.path}: cannot be loaded: invalid ELF header")
    )
    beside = finding("library-conflict", with_libraries(cluster(2), "node01", TORCHS, behind))
    assert beside.severity == "warning"
    assert f"{MODULES.path} (LD_LIBRARY_PATH) does not work" in beside.summary
    alone = finding("library-conflict", with_libraries(cluster(2), "node01", behind))
    assert alone.severity == "error"
    late = replace(TORCHS, version=Missing("timeout", f"{TORCHS.path}: did not come to an end"))
    assert run("library-conflict", with_libraries(cluster(2), "node01", late)).outcome == "unknown"
