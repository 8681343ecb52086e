"""Asks NVML about the GPUs and their driver, in a child process that is abandoned when a call does not return."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, start
from ncclcheck.facts.child import Ending, end_child, python_command, read_child, start_child
from ncclcheck.facts.gpu.gpu_processes import described
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.gpu import GpuDriver, GpuState

_MODULE = "ncclcheck.facts.gpu.gpus_child"
_MOST_CHILDREN = 6  # so often it is asked again without the calls that crashed or hung
# A call that has not come back for so long is left out by another child, while the first one goes on waiting for it.
_UNAVOIDABLE = ("nvmlInit", "nvmlDeviceGetCount")  # without which nothing can be asked
_STATE_FIELDS = frozenset(info.name for info in fields(GpuState))
_OWN_FIELDS = ("name", "uuid", "pci", "memory_bytes")


class Nvml(Struct, frozen=True):
    """What NVML reported: the GPUs in its order (by PCI address), and the driver."""

    gpus: Fact[tuple[Gpu, ...]]
    driver: Fact[GpuDriver]


class _NvmlLine(Struct, forbid_unknown_fields=True):
    """One line of the child, see gpus_child."""

    call: str | None = None
    gpu: int | None = None
    at_s: float = 0.0
    field: str | None = None
    value: Any = None
    missing: str | None = None
    detail: str = ""
    done: bool = False


class _NvmlAnswers(Struct):
    """What the child's lines say so far."""

    driver: dict[str, Any]
    gpus: dict[int, dict[str, Any]]
    last_call: str = ""
    last_gpu: int | None = None
    missing: Missing | None = None
    done: bool = False


class _Asked:
    """One child at work without the calls in `skip` (call -> why not). State: what it has written, and since when."""

    def __init__(
        self,
        environ: Mapping[str, str] | None,
        deadline: float,
        deadline_s: float,
        skip: Mapping[str, Missing],
    ) -> None:
        self._said = (b"", time.monotonic())
        self._running = start(self._ask, environ, deadline, deadline_s, dict(skip))

    def ended(self, wait_s: float) -> tuple[_NvmlAnswers, Missing | None] | None:
        """Return its answers, and why they are incomplete (None: they are not); None while it runs."""
        result = self._running.result(wait_s)
        if isinstance(result, Missing):
            return None if result.missing == "timeout" else (_NvmlAnswers({}, {}), result)
        return result

    def so_far(self) -> tuple[_NvmlAnswers, float]:
        """Return its answers so far, and for how long it has been silent."""
        output, at = self._said
        return _read(output), time.monotonic() - at

    def _hear(self, output: bytes) -> bool:
        self._said = (output, time.monotonic())
        return False

    def _ask(
        self, environ: Mapping[str, str] | None, deadline: float, deadline_s: float, skip: dict[str, Missing]
    ) -> tuple[_NvmlAnswers, Missing | None]:
        words = json.dumps({call: _plain(why) for call, why in skip.items()})
        try:
            process = start_child(python_command(_MODULE, [words]), environ)
        except (OSError, ValueError) as error:
            return _NvmlAnswers({}, {}), missing_for(error, _MODULE)
        output: dict[int, bytearray] = {}
        ending: Ending = "late"
        try:
            ending = read_child(process, output, deadline, self._hear)
        finally:
            gone = end_child(process)
        texts = [bytes(part) for part in output.values()]
        answers = _read(texts[0])
        if answers.done or answers.missing is not None:
            return answers, None
        if ending == "late":
            left = "" if gone else f" (process {process.pid} survives SIGKILL)"
            why = Missing("timeout", f"NVML: {_named(answers)} did not answer within {deadline_s:g} s{left}")
            return answers, why
        error_text = texts[1].decode("utf-8", "replace").strip()[-500:]
        ended = f"the child ended with {process.returncode}"
        return answers, Missing(
            "error", f"NVML: {ended} in {_named(answers)}" + (f": {error_text}" if error_text else "")
        )


def read_nvml(environ: Mapping[str, str] | None = None, deadline_s: float = timeouts.NVML_S) -> Nvml:
    """Return what NVML reports within `deadline_s`. A call that hangs or crashes is named, and only its value is lost.

    GPUs stand in NVML's order (by PCI address). CUDA_VISIBLE_DEVICES does not hide them from it: this is what the node
    has, not what a job was given. Without a driver library they are Missing "absent".
    The rest is asked again without the call that crashed, and meanwhile without one that does not come back: a call
    that is only slow is waited for until the deadline.
    """
    deadline = time.monotonic() + deadline_s
    skip: dict[str, Missing] = {}
    stuck: list[str] = []  # the same calls, as they are named
    asked = [_Asked(environ, deadline, deadline_s, skip)]
    while time.monotonic() < deadline and not _is_over(asked):
        found = _to_leave_out(asked[-1], deadline_s) if len(asked) < _MOST_CHILDREN else None
        if found is None:
            continue
        answers, why = found
        skip[_call(answers)] = why
        stuck.append(_named(answers))
        asked.append(_Asked(environ, deadline, deadline_s, skip))
    for number, end in enumerate(
        child.ended(0) for child in asked
    ):  # each leaves out one call more than the one before
        if end is not None and (end[0].done or end[0].missing):
            return _nvml(*end, stuck[:number], skip)
    return _combined(
        [child.ended(timeouts.CHILD_DYING_S + timeouts.NVML_POLL_S) for child in asked], stuck, skip
    )


def _is_over(asked: list[_Asked]) -> bool:
    """Return whether one child has answered everything, and no earlier one may still do so.

    Or when there is nothing to wait for.
    """
    ends = [child.ended(0) for child in asked[:-1]] + [asked[-1].ended(timeouts.NVML_POLL_S)]
    for end in ends:
        if end is None:
            return False
        answers, why = end
        if answers.done or answers.missing is not None:
            return True
    return (
        not answers.last_call
        or len(asked) >= _MOST_CHILDREN
        or (why is not None and why.missing == "timeout")
    )


def _to_leave_out(newest: _Asked, deadline_s: float) -> tuple[_NvmlAnswers, Missing] | None:
    """Return its answers so far, and why to leave out its last call; None where there is no reason to."""
    end = newest.ended(0)
    if end is not None:
        answers, _ = end
        is_cut = not answers.done and answers.missing is None and bool(answers.last_call)
        return (answers, Missing("error", f"NVML: {answers.last_call} crashed")) if is_cut else None
    answers, silent_s = newest.so_far()
    if silent_s < timeouts.NVML_SILENT_S or not answers.last_call or answers.last_call in _UNAVOIDABLE:
        return None
    return answers, Missing("timeout", f"NVML: {_named(answers)} did not answer within {deadline_s:g} s")


def _call(answers: _NvmlAnswers) -> str:
    return f"{answers.last_call} {answers.last_gpu}"


def _combined(
    ends: list[tuple[_NvmlAnswers, Missing | None] | None], stuck: list[str], skip: Mapping[str, Missing]
) -> Nvml:
    """Return the answers of all children; of several answers the last. A child without time to ask adds nothing."""
    whole = _NvmlAnswers({}, {})
    why: Missing | None = Missing("timeout", "NVML: the process that asks it did not end")
    for number, end in enumerate(ends):
        if end is None or (number and not end[0].last_call):
            continue
        answers, why = end
        whole.driver |= answers.driver
        for index, values in answers.gpus.items():
            whole.gpus.setdefault(index, {}).update(values)
        whole.last_call, whole.last_gpu, whole.missing = answers.last_call, answers.last_gpu, answers.missing
    return _nvml(whole, why, stuck, skip)


def _named(answers: _NvmlAnswers) -> str:
    if not answers.last_call:
        return "nvidia-ml-py"
    return answers.last_call if answers.last_gpu is None else f"{answers.last_call} of GPU {answers.last_gpu}"


def _read(output: bytes) -> _NvmlAnswers:
    """Return what whole lines say; the last one may have been cut."""
    answers = _NvmlAnswers({}, {})
    for text in output.split(b"\n"):
        try:
            line = msgspec.json.decode(text, type=_NvmlLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if line.done:
            answers.done = True
        elif line.missing is not None:
            answers.missing = decode(text, Missing)
        elif line.call is not None:
            answers.last_call, answers.last_gpu = line.call, line.gpu
        elif line.field is not None and line.gpu is None:
            answers.driver[line.field] = line.value
        elif line.field is not None and line.gpu is not None:
            answers.gpus.setdefault(line.gpu, {})[line.field] = line.value
    return answers


def _nvml(answers: _NvmlAnswers, why: Missing | None, stuck: list[str], skip: Mapping[str, Missing]) -> Nvml:
    if answers.missing is not None and not answers.driver:
        return Nvml(answers.missing, answers.missing)
    rest = why or answers.missing or Missing("error", "NVML: the call crashed")
    driver = GpuDriver(
        version=_value(answers.driver.get("version"), str, rest),
        cuda=_value(answers.driver.get("cuda"), str, rest),
        answered_after_s=_value(answers.driver.get("answered_after_s"), float, rest),
        stuck_call=stuck[0] if stuck else _named(answers) if why is not None else "",
        stuck_why=next(iter(skip.values())).detail if stuck else rest.detail if why is not None else "",
    )
    if why is not None and not answers.last_call:
        return Nvml(why, why)  # not even the package answered: that is no driver's fault
    if answers.missing is not None or (not answers.gpus and why is not None):
        return Nvml(answers.missing or rest, driver)
    gpus = tuple(_gpu(index, values, rest) for index, values in sorted(answers.gpus.items()))
    return Nvml(tuple(described_gpu(gpu) for gpu in gpus), driver)


def described_gpu(gpu: Gpu) -> Gpu:
    """Return the same with its processes named, and those of this run marked."""
    processes = gpu.state.processes
    if isinstance(processes, Missing):
        return gpu
    return replace(gpu, state=replace(gpu.state, processes=described(processes)))


def _gpu(index: int, values: dict[str, Any], rest: Missing) -> Gpu:
    lost = values.get("lost")
    reason = rest if lost is None else _missing(lost, rest)
    state = {name: values[name] for name in _STATE_FIELDS if name in values}
    state |= {name: _plain(reason) for name in _STATE_FIELDS if name not in values}
    document = {"index": index, "state": state}
    document |= {name: values.get(name, _plain(reason)) for name in _OWN_FIELDS}
    try:
        return decode(json.dumps(document), Gpu)
    except DecodeError as error:
        wrong = Missing("error", f"NVML: an answer that is not understood: {error}")
        return Gpu(index, wrong, wrong, wrong, wrong, GpuState(**dict.fromkeys(_STATE_FIELDS, wrong)))


def _value(value: Any, type_: type[Any], rest: Missing) -> Any:
    if value is None:
        return rest
    if isinstance(value, type_):
        return value
    return _missing(value, rest)


def _missing(value: Any, rest: Missing) -> Missing:
    try:
        return msgspec.convert(value, Missing)
    except msgspec.ValidationError:
        return rest


def _plain(missing: Missing) -> dict[str, str]:
    return {"missing": missing.missing, "detail": missing.detail}
