"""Asks torch for its GPUs, and lets each do a small verified piece of work in a child process that may be abandoned."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import Ending, end_child, python_command, read_child, start_child
from ncclcheck.facts.software.software import torch_words
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuWork, TorchGpus, WorkOutcome

_MODULE = "ncclcheck.facts.gpu.gpu_work_child"
# A GPU that has not moved on for so long hangs; opening the first one after a quiet time takes up to two seconds.
_NO_CUDA = Missing("unsupported", "this torch was built without CUDA")
_NO_NCCL = Missing("absent", "this torch was built without NCCL (torch.distributed.is_nccl_available)")


class _TorchLine(Struct):
    stage: str | None = None
    at_s: float = 0.0
    uuid: str | None = None
    answer: dict[str, Any] | None = None
    gpu: int | None = None
    exit: int | None = None  # of the process of this GPU
    waited_s: float | None = None  # for a core, since its process began


class TorchReading(Struct):
    """What one child said: the stage it was in last, since when, its answer, and how it ended.

    `waited_s`: for a core, and `waited_before_s` as much of it as was before that stage.
    """

    stage: str = ""
    at_s: float = 0.0
    uuid: str | None = None
    answer: dict[str, Any] | None = None
    seconds: float = 0.0
    ending: Ending = "exited"
    returncode: int | None = None
    words: str = ""
    waited_s: float = 0.0
    waited_before_s: float = 0.0


def torch_has_cuda() -> Fact[bool]:
    """Return whether torch was built with CUDA, by its version.py; Missing where there is no torch."""
    words = torch_words()
    if isinstance(words, Missing):
        return words
    return words.get("cuda") is not None


def read_torch_gpus(
    environ: Mapping[str, str], deadline_s: float, has_cuda: Callable[[], Fact[bool]] = torch_has_cuda
) -> Fact[TorchGpus]:
    """Return what torch sees under the environment of the job. It is not loaded where it has no CUDA."""
    cuda = has_cuda()
    if not cuda or isinstance(cuda, Missing):
        return cuda if isinstance(cuda, Missing) else _NO_CUDA
    reading = ask(["list"], environ, deadline_s)
    if isinstance(reading, Missing):
        return reading
    if reading.answer is None:
        return _no_answer(reading, deadline_s)
    if "error" in reading.answer:
        return Missing("error", str(reading.answer["error"]))
    try:
        return msgspec.convert(
            {**reading.answer, "architectures": tuple(reading.answer["architectures"])},
            _Listing,
        ).as_fact()
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        return Missing("error", f"torch: an answer that is not understood: {error}")


class _Listing(Struct):
    count: int
    architectures: tuple[str, ...]
    nccl: str | None

    def as_fact(self) -> TorchGpus:
        """Return the same as a fact."""
        return TorchGpus(self.count, self.architectures, self.nccl or _NO_NCCL)


def read_gpu_work(
    most: int,
    environ: Mapping[str, str],
    deadline_s: float,
    has_cuda: Callable[[], Fact[bool]] = torch_has_cuda,
) -> Fact[tuple[GpuWork, ...]]:
    """Return the result of the work on each GPU that torch sees, at most `most`, all at once.

    A child that was still loading torch at the deadline says nothing of its GPU: unless another GPU is at fault, the
    whole is then Missing.
    """
    cuda = has_cuda()
    if not cuda or isinstance(cuda, Missing):
        return cuda if isinstance(cuda, Missing) else _NO_CUDA
    readings = ask_each(most, environ, deadline_s)
    if isinstance(readings, Missing):
        return readings
    return gathered([judged(ordinal, reading, deadline_s) for ordinal, reading in enumerate(readings)])


def gathered(works: list[GpuWork | Missing | None]) -> Fact[tuple[GpuWork, ...]]:
    """Return all that is known; Missing where a GPU did not answer and none failed. None: torch has no such GPU."""
    known = tuple(work for work in works if isinstance(work, GpuWork))
    unknown = [work for work in works if isinstance(work, Missing)]
    if unknown and all(gpu_work.outcome == "ok" for gpu_work in known):
        return unknown[0]
    return known


def judged(ordinal: int, reading: TorchReading, deadline_s: float) -> GpuWork | Missing | None:
    """Return what the child's words mean for its GPU. One that had no time to show anything is Missing, not at fault.

    None: torch has no GPU of that number, since the environment hides it.
    """
    uuid: Fact[str] = reading.uuid or Missing("unsupported", "torch does not tell it of this device")

    def work(outcome: WorkOutcome, detail: str) -> GpuWork:
        return GpuWork(ordinal, outcome, uuid, round(reading.seconds, 1), detail)

    if reading.answer is not None and "error" in reading.answer:
        return Missing("error", str(reading.answer["error"]))
    if reading.answer is not None:
        outcome, detail = reading.answer.get("outcome"), str(reading.answer.get("detail", ""))
        if outcome == "hidden":
            return None
        if outcome in ("ok", "wrong-result", "failed"):
            return work(outcome, detail)
        return Missing("error", f"torch: an answer that is not understood: {outcome!r}")
    if reading.stage in ("", "import"):
        return _no_answer(reading, deadline_s)
    if reading.ending == "late":
        waited_s = reading.waited_s - reading.waited_before_s
        if reading.seconds - reading.at_s - waited_s < timeouts.GPU_WORK_HUNG_S:
            busy = f": its process waited {waited_s:.0f} s for a core" if waited_s > 1 else ""
            return Missing("timeout", f"torch: no time was left to {reading.stage} (GPU {ordinal}){busy}")
        return work("hung", f"{reading.stage}: no answer for {reading.seconds - reading.at_s:.0f} s")
    return work(
        "failed",
        f"{reading.stage}: the process ended with {reading.returncode}: {reading.words}".rstrip(": "),
    )


def _no_answer(reading: TorchReading, deadline_s: float) -> Missing:
    if reading.ending == "late":
        return Missing("timeout", f"torch: {reading.stage or 'start'}: no answer within {deadline_s:g} s")
    return Missing(
        "error", f"torch: the child ended with {reading.returncode} in {reading.stage}: {reading.words}"
    )


def ask(
    arguments: list[str], environ: Mapping[str, str], deadline_s: float, module: str = _MODULE
) -> TorchReading | Missing:
    """Run the child, and gather its lines; afterwards it is gone, or abandoned if it cannot be killed."""
    ran = _run(arguments, environ, deadline_s, module)
    return ran if isinstance(ran, Missing) else _reading(*ran)


def ask_each(count: int, environ: Mapping[str, str], deadline_s: float) -> list[TorchReading] | Missing:
    """Return what the process of each GPU said: one child imports torch once, and forks them."""
    ran = _run(["work", str(count)], environ, deadline_s, _MODULE)
    if isinstance(ran, Missing):
        return ran
    return [_reading(*ran, ordinal) for ordinal in range(count)]


def _run(
    arguments: list[str], environ: Mapping[str, str], deadline_s: float, module: str
) -> tuple[TorchReading, list[_TorchLine]] | Missing:
    began = time.monotonic()
    try:
        process = start_child(python_command(module, arguments), environ)
    except (OSError, ValueError) as error:
        return missing_for(error, module)
    output: dict[int, bytearray] = {}
    ending: Ending = "late"
    try:
        ending = read_child(process, output, began + deadline_s)
    finally:
        seconds = time.monotonic() - began
        end_child(process)
    out, err = (bytes(part) for part in output.values())
    words = err.decode("utf-8", "replace").strip()[-300:]
    lines = []
    for text in out.split(b"\n"):
        try:
            lines.append(msgspec.json.decode(text, type=_TorchLine))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut by the end, or printed by something that torch loaded
    end = TorchReading(seconds=seconds, ending=ending, returncode=process.returncode, words=words)
    return end, lines


def _reading(end: TorchReading, lines: Sequence[_TorchLine], gpu: int | None = None) -> TorchReading:
    """Return what the lines say that are about all GPUs or this one, and how its process ended."""
    reading = replace(end)
    for line in lines:
        if line.gpu not in (None, gpu):
            continue
        if line.stage is not None:
            reading.stage, reading.at_s, reading.waited_before_s = line.stage, line.at_s, reading.waited_s
        reading.uuid = line.uuid or reading.uuid
        reading.answer = line.answer or reading.answer
        reading.waited_s = reading.waited_s if line.waited_s is None else line.waited_s
        if line.exit is not None:
            reading.ending, reading.returncode = "exited", line.exit
    return reading
