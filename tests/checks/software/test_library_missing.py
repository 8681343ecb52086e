"""NC512 library-missing."""

from __future__ import annotations

from ncclcheck.model.image import AbsentLibrary, DamagedLibrary, Examined, Libraries
from tests.checks.running import finding, run
from tests.image_builders import HOST, TORCH, healthy_image

PLUGIN = Examined("network plug-in", "/opt/amazon/ofi-nccl/lib/libnccl-net.so")


def test_a_missing_library_is_named_with_who_needs_it() -> None:
    lacking = AbsentLibrary("libfabric.so.1", PLUGIN.path, PLUGIN)
    found = finding("library-missing", healthy_image(libraries=Libraries((TORCH, PLUGIN), (lacking,))))
    assert (found.severity, found.hosts) == ("error", (HOST,))
    assert "libfabric.so.1 is missing in the image, and network plug-in needs it" in found.summary
    assert PLUGIN.path in found.evidence[0].subject


def test_every_missing_library_is_a_finding_of_its_own() -> None:
    absent = (
        AbsentLibrary("liba.so", "/x", TORCH),
        AbsentLibrary("libb.so", "/x", TORCH),
        AbsentLibrary("libb.so", "/y", TORCH),
    )
    found = run("library-missing", healthy_image(libraries=Libraries((TORCH,), absent))).findings
    assert [len(one.evidence) for one in found] == [1, 2]


def test_a_provider_of_other_cards_is_a_warning() -> None:
    provider = Examined("verbs", "/usr/lib/libefa-rdmav34.so")
    absent = (AbsentLibrary("libefa.so.1", provider.path, provider),)
    found = finding("library-missing", healthy_image(libraries=Libraries((TORCH, provider), absent)))
    assert found.severity == "warning"


def test_without_a_library_of_torch_it_is_not_known() -> None:
    result = run("library-missing", healthy_image(libraries=Libraries((PLUGIN,), ())))
    assert result.outcome == "unknown"


def test_a_damaged_file_is_an_error_that_names_it() -> None:
    path = "/usr/lib/libnccl.so.2"
    damaged = DamagedLibrary(path, f"{path} is cut short: it has 7 bytes", Examined("NCCL", path))
    found = finding("library-missing", healthy_image(libraries=Libraries((TORCH,), (), damaged=(damaged,))))
    assert (found.severity, found.hosts) == ("error", (HOST,))
    assert f"{path} in the image is damaged, and NCCL needs it: it is cut short" in found.summary
    torchs = DamagedLibrary("/t/libtorch_cuda.so", "/t/libtorch_cuda.so is no ELF file", TORCH)
    alone = run("library-missing", healthy_image(libraries=Libraries((), (), damaged=(torchs,))))
    assert (alone.outcome, len(alone.findings)) == ("found", 1)
    provider = DamagedLibrary("/p.so", "/p.so is no ELF file", Examined("verbs", "/p.so"))
    libraries = Libraries((TORCH,), (), damaged=(provider,))
    assert finding("library-missing", healthy_image(libraries=libraries)).severity == "warning"


def test_a_file_that_could_not_be_read_is_no_pass() -> None:
    path = "/usr/lib/libnccl.so.2"
    libraries = Libraries((TORCH,), (), unreadable={path: f"{path}: Permission denied"})
    result = run("library-missing", healthy_image(libraries=libraries))
    assert result.outcome == "unknown"
    assert path in str(result)
