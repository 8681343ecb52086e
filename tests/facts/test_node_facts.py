"""All facts of this machine at once: complete, cheap, in time, and whole in spite of a broken part."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ncclcheck.facts.node_facts import collect, compiled_nccl
from ncclcheck.facts.section import FactsRequest
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.gpu import TorchGpus
from ncclcheck.model.launch import Launch
from tests.cost import interpreter_s, processor_s

_LAUNCH = Launch("none", 0, 1, 0, 1, 0, 1, None, 29500)
_READ_ELSEWHERE = {"routes", "master", "image"}


def test_every_section_is_read_and_survives_the_journey_as_json(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("run()")
    facts = collect(FactsRequest(_LAUNCH, os.environ, (str(tmp_path),)))
    read = {name for name in NodeFacts.__struct_fields__ if not isinstance(getattr(facts, name), Missing)}
    may_be_absent = {"gpus", "gpu_driver", "gpu_log", "gpu_work", "torch_gpus"}
    assert read | may_be_absent == set(NodeFacts.__struct_fields__) - _READ_ELSEWHERE
    assert decode(encode(facts), NodeFacts) == facts
    assert facts.launch == _LAUNCH


def test_a_torch_that_pins_no_nccl_package_is_asked_itself() -> None:
    unpinned = Missing("unsupported", "this torch pins no NCCL package, and asking torch would load it")
    assert compiled_nccl("2.27.5", TorchGpus(8, (), "2.27.5")) == "2.27.5"
    assert compiled_nccl(unpinned, TorchGpus(8, (), "2.26.5")) == "2.26.5"
    assert compiled_nccl(unpinned, Missing("absent", "no driver")) == unpinned
    late = compiled_nccl(unpinned, Missing("timeout", "torch: import: no answer within 10 s"))
    assert isinstance(late, Missing)
    assert late.missing == "timeout"


def test_nothing_of_it_costs_much_or_loads_torch() -> None:
    program = (
        "import os, sys\n"
        "from ncclcheck.facts.node_facts import collect\n"
        "from ncclcheck.facts.section import FactsRequest\n"
        "from ncclcheck.model.launch import Launch\n"
        "launch = Launch('none', 0, 1, 0, 1, 0, 1, None, 29500)\n"
        "collect(FactsRequest(launch, os.environ, ('ncclcheck',)))\n"
        "assert 'torch' not in sys.modules\n"
    )
    # about 25 times as much as a bare Python, its own imports included: a quarter of a second
    assert processor_s([sys.executable, "-c", program]) < 70 * interpreter_s()


class _Broken(Mapping[str, str]):
    """An environment whose variables cannot be listed."""

    def __getitem__(self, name: str) -> str:
        raise RuntimeError(f"no {name} for you")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("cannot be listed")

    def __len__(self) -> int:
        return 1


def test_a_section_that_crashes_says_how_and_takes_no_other_with_it() -> None:
    facts = collect(FactsRequest(_LAUNCH, _Broken()))
    assert facts.environment == Missing("error", "RuntimeError: cannot be listed")
    assert isinstance(facts.nccl, Missing)
    assert "for you" in facts.nccl.detail
    assert not isinstance(facts.software, Missing)
    assert facts.software.nccl == facts.nccl
    assert not isinstance(facts.interfaces, Missing)
    assert not isinstance(facts.limits, Missing)


@pytest.mark.slow
def test_a_library_that_hangs_costs_its_own_answer_only(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a library that hangs")
    source = "#include <unistd.h>\nint ncclGetVersion(int *v) { for (;;) pause(); }\n"
    (tmp_path / "hangs.c").write_text(source)
    library = tmp_path / "libnccl.so.2"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "hangs.c")]
    subprocess.run(command, check=True, timeout=60)
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    began = time.monotonic()
    facts = collect(FactsRequest(_LAUNCH, environ, deadline_s=6))
    assert time.monotonic() - began < 2 * 6  # its time is spent once, whoever else asks that library
    assert not isinstance(facts.nccl, Missing)
    assert isinstance(facts.nccl.asked, Missing)
    assert (facts.nccl.asked.missing, str(library) in facts.nccl.asked.detail) == ("timeout", True)
    for section in ("interfaces", "names", "environment", "code", "limits", "software"):
        assert not isinstance(getattr(facts, section), Missing), section


def test_a_deadline_of_nothing_still_gives_facts_of_the_right_shape() -> None:
    facts = collect(FactsRequest(_LAUNCH, {}, deadline_s=0))
    assert decode(encode(facts), NodeFacts) == facts
    assert isinstance(facts.nccl, Missing) or isinstance(facts.nccl.asked, Missing)


def test_whether_home_is_set_is_told() -> None:
    for environ in ({}, {"HOME": "/root"}):
        facts = collect(FactsRequest(_LAUNCH, environ))
        assert not isinstance(facts.nccl, Missing)
        assert facts.nccl.home_set == bool(environ)
