"""A whole image, made of small libraries and packages that the test builds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ncclcheck.facts.image.image_facts import ImageRequest, read_image
from ncclcheck.model.image import Examined
from tests.fact_builders import some
from tests.facts.compiled import nccl_library, needs_compiler, shared_library


@pytest.mark.slow
@needs_compiler
def test_an_image_is_read_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, lib = tmp_path / "site", tmp_path / "lib"
    nccl = site / "nvidia/nccl/lib/libnccl.so.2"
    nccl_library(nccl, 22705)
    needs = (
        "-Wl,--no-as-needed",
        str(nccl),
        "-Wl,--disable-new-dtags",
        "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib",
    )
    shared_library(site / "torch/lib/libtorch_cuda.so", "int torch;", *needs)
    (site / "torch/__init__.py").write_text(
        "class version:\n cuda = '12.8'\nclass _C:\n _cuda_getArchFlags = staticmethod(lambda: 'sm_90')\n"
    )
    (site / "torch/version.py").write_text("__version__ = '2.9.0'\ncuda = '12.8'\n")
    fabric = lib / "libfabric-of-nobody.so.1"
    shared_library(fabric, "int fabric;", "-Wl,-soname,libfabric-of-nobody.so.1")
    shared_library(lib / "libnccl-net.so", "int net;", "-Wl,--no-as-needed", str(fabric))
    fabric.unlink()
    conf = tmp_path / "etc/security/limits.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("* - memlock 64\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    image = read_image(ImageRequest({"LD_LIBRARY_PATH": str(lib)}, tmp_path, sys.path, 40.0))
    libraries = some(image.libraries)
    plugin = Examined("network plug-in", str(lib / "libnccl-net.so"))
    assert plugin in libraries.examined
    assert Examined("torch", str(site / "torch/lib/libtorch_cuda.so")) in libraries.examined
    assert Examined("NCCL", str(nccl)) in libraries.examined
    mine = [
        (library.name, library.examined)
        for library in libraries.absent
        if library.needed_by.startswith(str(tmp_path))
    ]
    assert mine == [("libfabric-of-nobody.so.1", plugin)]
    assert some(image.torch).architectures == ("sm_90",)
    assert [limit.value for limit in some(image.limits)] == ["64"]


def test_what_was_not_read_by_the_deadline_is_missing() -> None:
    image = read_image(ImageRequest({}, deadline_s=0.05))
    assert "timeout" in str(image.torch)
