"""Torch's GPUs and their piece of work, at the boundary of the child: there is no GPU where these tests run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncclcheck import timeouts
from ncclcheck.facts.gpu import gpu_work_child
from ncclcheck.facts.gpu.gpu_work import (
    TorchReading,
    ask,
    ask_each,
    gathered,
    judged,
    read_gpu_work,
    read_torch_gpus,
)
from ncclcheck.facts.gpu.gpu_work_child import count_gpus, multiply, nccl_version
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuWork
from tests.fact_builders import some

LATE = Missing("timeout", "late")


def told(**changes: object) -> TorchReading:
    one = TorchReading(stage="multiply", at_s=3.0, uuid="GPU-1", seconds=4.0, returncode=0)
    for name, value in changes.items():
        setattr(one, name, value)
    return one


def outcome(one: TorchReading) -> tuple[str, str]:
    work = judged(2, one, 10.0)
    assert isinstance(work, GpuWork), work
    assert (work.ordinal, work.uuid) == (2, "GPU-1")
    return work.outcome, work.detail


def test_what_the_child_answers_is_the_outcome() -> None:
    assert outcome(told(answer={"outcome": "ok", "detail": ""})) == ("ok", "")
    assert outcome(told(answer={"outcome": "wrong-result"})) == ("wrong-result", "")
    failed = {"outcome": "failed", "detail": "RuntimeError: CUDA error: out of memory"}
    assert outcome(told(answer=failed)) == ("failed", "RuntimeError: CUDA error: out of memory")


def test_a_child_that_dies_on_the_gpu_is_a_failure_with_its_words() -> None:
    dead = told(returncode=-11, words="Segmentation fault")
    assert outcome(dead) == ("failed", "multiply: the process ended with -11: Segmentation fault")


def test_only_a_gpu_that_had_its_time_hangs() -> None:
    late = told(ending="late", at_s=3.0, seconds=3.0 + timeouts.GPU_WORK_HUNG_S + 1)
    assert outcome(late) == ("hung", "multiply: no answer for 6 s")
    starved = told(ending="late", at_s=3.0, seconds=9.0, waited_before_s=1.0, waited_s=4.0)
    assert isinstance(judged(2, starved, 9.0), Missing)
    hurried = judged(2, told(ending="late", at_s=3.0, seconds=4.0), 4.0)
    assert isinstance(hurried, Missing)
    assert hurried.missing == "timeout"


def test_a_torch_that_does_not_load_says_nothing_of_the_gpu() -> None:
    for one in (told(stage="import", ending="late"), told(answer={"error": "torch cannot be imported"})):
        assert isinstance(judged(0, one, 10.0), Missing)


def test_a_gpu_that_the_environment_hides_is_none() -> None:
    assert judged(7, told(answer={"outcome": "hidden"}), 10.0) is None


def test_all_that_is_known_is_kept_when_one_is_at_fault_and_else_all_must_be_known() -> None:
    good = GpuWork(0, "ok", "GPU-1", 1.0)
    bad = GpuWork(1, "failed", "GPU-2", 1.0, "x")
    assert gathered([good, None]) == (good,)
    assert gathered([good, LATE]) == LATE
    assert gathered([good, bad, LATE]) == (good, bad)


def test_a_torch_without_cuda_is_not_loaded() -> None:
    assert isinstance(read_torch_gpus({}, 0.0, lambda: False), Missing)
    assert read_gpu_work(8, {}, 0.0, lambda: Missing("absent", "no torch")) == Missing("absent", "no torch")


def stub_of_torch(*, counted: int = 8, given: int = 8, has_nccl: bool = True) -> SimpleNamespace:
    """A torch without NVIDIA's wheels, as NGC and conda build it: no package pins its NCCL."""
    return SimpleNamespace(
        _C=SimpleNamespace(_cuda_getDeviceCount=lambda: given),
        cuda=SimpleNamespace(device_count=lambda: counted, nccl=SimpleNamespace(version=lambda: (2, 26, 5))),
        distributed=SimpleNamespace(is_available=lambda: True, is_nccl_available=lambda: has_nccl),
    )


def test_torch_itself_says_whether_it_has_nccl() -> None:
    assert nccl_version(stub_of_torch()) == "2.26.5"
    assert nccl_version(stub_of_torch(has_nccl=False)) is None


def test_of_a_gpu_in_mig_mode_what_cuda_gives_is_counted_and_not_what_nvml_lists() -> None:
    assert count_gpus(stub_of_torch(counted=8, given=1)) == 1


def opened(
    counted: int, given: int, ordinal: int, name: str = "NVIDIA H100 80GB HBM3"
) -> list[dict[str, object]]:
    """What a process says that opens the GPU of that number, where NVML counts so many and CUDA gives so many."""

    def set_device(device: SimpleNamespace) -> None:
        if device.index >= given:
            raise RuntimeError("CUDA error: invalid device ordinal")

    torch = SimpleNamespace(
        _C=SimpleNamespace(_cuda_getDeviceCount=lambda: given),
        device=lambda _, index: SimpleNamespace(index=index),
        cuda=SimpleNamespace(
            device_count=lambda: counted,
            set_device=set_device,
            get_device_properties=lambda _: SimpleNamespace(uuid="5b-1", name=name),
        ),
    )
    said: list[dict[str, object]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_work_child, "_say", lambda **line: said.append(line))
        patch.setattr(gpu_work_child, "multiply", lambda *_: True)
        said.append(gpu_work_child.work(torch, ordinal))
    return said


def test_gpus_that_cuda_does_not_give_beside_a_mig_instance_are_hidden() -> None:
    assert opened(8, 1, 1)[-1] == {"outcome": "hidden"}
    assert opened(8, 8, 7)[-1] == {"outcome": "ok", "detail": ""}
    assert opened(1, 1, 1)[-1] == {"outcome": "hidden"}


def test_that_cuda_gives_no_gpu_at_all_is_a_failure_with_its_words() -> None:
    with pytest.raises(RuntimeError, match="CUDA error"):
        opened(8, 0, 0)


def test_the_uuid_of_a_mig_instance_is_not_told_as_that_of_a_gpu() -> None:
    assert {"uuid": "GPU-5b-1"} in opened(1, 1, 0)
    assert {"uuid": None} in opened(1, 1, 0, "NVIDIA A100-SXM4-40GB MIG 1g.5gb")


# A torch with eight GPUs: one is hidden, the process of one dies, the others fail with an exception.
TORCH_OF_EIGHT = """
import os
from pathlib import Path
from types import SimpleNamespace

with open(os.environ["IMPORTS"], "a") as file:
    file.write("imported\\n")
cuda = SimpleNamespace(device_count=lambda: 7)
_C = SimpleNamespace()

def device(_kind, ordinal):
    if ordinal == 3:
        os.abort()
    raise RuntimeError(f"CUDA error {ordinal}")
"""


def test_for_all_gpus_torch_is_imported_once_and_each_has_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "torch.py").write_text(TORCH_OF_EIGHT)
    environ = {**os.environ, "IMPORTS": str(tmp_path / "imports")}
    works = some(read_gpu_work(8, environ, 60.0, lambda: True))
    assert [(work.ordinal, work.outcome) for work in works] == [(ordinal, "failed") for ordinal in range(7)]
    assert works[2].detail == "RuntimeError: CUDA error 2"
    assert works[3].detail.startswith("open the GPU: the process ended with -6")
    assert (tmp_path / "imports").read_text() == "imported\n"


@pytest.mark.slow
def test_a_real_torch_that_sees_no_gpu_lists_none_and_works_on_none() -> None:
    pytest.importorskip("torch")
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    assert some(read_torch_gpus(environ, 90.0, lambda: True)).count == 0
    assert some(read_gpu_work(1, environ, 90.0, lambda: True)) == ()


# Seven processes compute without end on one core; that of the last GPU sleeps, as in a call that does not return.
TORCH_ON_ONE_CORE = """
import os, time
from types import SimpleNamespace

cuda = SimpleNamespace(device_count=lambda: 8)
_C = SimpleNamespace()

def device(_kind, ordinal):
    while ordinal == 7:
        time.sleep(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    while True:
        pass
"""


@pytest.mark.slow
def test_a_process_that_waits_for_a_core_is_no_gpu_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(timeouts, "GPU_WORK_HUNG_S", 2.0)
    (tmp_path / "torch.py").write_text(TORCH_ON_ONE_CORE)
    told_by = ask_each(8, dict(os.environ), 6.0)
    assert not isinstance(told_by, Missing)
    hung = judged(7, told_by[7], 6.0)
    assert isinstance(hung, GpuWork)
    assert (hung.outcome, hung.detail[:23]) == ("hung", "open the GPU: no answer")
    for ordinal in range(7):
        starved = judged(ordinal, told_by[ordinal], 6.0)
        assert isinstance(starved, Missing), (ordinal, starved)
        assert "for a core" in starved.detail


def test_the_product_is_checked_element_by_element() -> None:
    torch = pytest.importorskip("torch")
    assert multiply(torch, torch.device("cpu"))


def test_a_child_that_cannot_start_or_is_killed_is_told() -> None:
    one = ask(["list"], os.environ, 60.0, "ncclcheck.facts.no_such_module")
    assert isinstance(one, TorchReading)
    assert (one.answer, one.returncode) == (None, 1)
    assert "no_such_module" in one.words
