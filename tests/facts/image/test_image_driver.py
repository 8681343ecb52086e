"""Libraries of the NVIDIA driver in an image."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.image.image_driver import driver_libraries
from ncclcheck.facts.image.image_verbs import own_machine
from ncclcheck.facts.software.needed_libraries import LoaderSearch

DRIVER_BYTES = 1 << 20


def placed(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_stubs_compat_and_real_libraries_are_told_apart(tmp_path: Path) -> None:
    stub = placed(tmp_path / "cuda/lib64/stubs/libcuda.so", 30000)
    (stub.parent / "libcuda.so.1").symlink_to("libcuda.so")
    compat = placed(tmp_path / "cuda-12.8/compat/libcuda.so.1", DRIVER_BYTES)
    real = placed(tmp_path / "lib/libnvidia-ml.so.1", DRIVER_BYTES)
    path = ":".join(str(one.parent) for one in (stub, compat))
    cache = {("libnvidia-ml.so.1", "x86-64"): (str(real),)}
    found = driver_libraries(LoaderSearch({"LD_LIBRARY_PATH": path}, cache, folders=()), own_machine())
    mine = [library for library in found if library.path.startswith(str(tmp_path))]
    assert [(library.path, library.kind) for library in mine] == [
        (str(stub.parent / "libcuda.so.1"), "stub"),
        (str(compat), "compat"),
        (str(real), "driver"),
    ]
    assert [library.found_by for library in mine][1:] == ["LD_LIBRARY_PATH", "the loader's cache (ldconfig)"]
