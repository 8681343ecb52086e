"""Asks NVML about the GPUs and their driver, in a child process that is abandoned when a call does not return."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from ncclcheck.facts.child import Ending, end_child, python_command, read_child, start_child
from ncclcheck.facts.deadline import missing_for
from ncclcheck.facts.gpu_processes import described
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.gpu import GpuDriver, GpuState

_MODULE = "ncclcheck.facts.gpus_child"
_CRASHES = 3  # so many crashing calls are left out one after the other
_STATE_FIELDS = frozenset(one.name for one in fields(GpuState))
_OWN_FIELDS = ("name", "uuid", "pci", "memory_bytes")


class Nvml(Struct, frozen=True):
    """What NVML told: the GPUs in its order (by PCI address), and the driver."""

    gpus: Fact[tuple[Gpu, ...]]
    driver: Fact[GpuDriver]


class _Line(Struct, forbid_unknown_fields=True):
    """One line of the child, see gpus_child."""

    call: str | None = None
    gpu: int | None = None
    at_s: float = 0.0
    field: str | None = None
    value: Any = None
    missing: str | None = None
    detail: str = ""
    done: bool = False


class _Told(Struct):
    """What the child's lines say so far. `end` is why the rest was not told."""

    driver: dict[str, Any]
    gpus: dict[int, dict[str, Any]]
    last_call: str = ""
    last_gpu: int | None = None
    missing: Missing | None = None
    done: bool = False


def read_nvml(environ: Mapping[str, str] | None = None, deadline_s: float = 5.0) -> Nvml:
    """What NVML tells within `deadline_s`. A call that hangs or dies is named, and costs what it was to tell.

    GPUs stand in NVML's order (by PCI address). CUDA_VISIBLE_DEVICES does not hide them from it: this is what the node
    has, not what a job was given. Without a driver library they are Missing "absent".
    After a crash the rest is asked again without the call that crashed. After a hang there is no time left, and what
    had not been asked by then is Missing too.
    """
    deadline = time.monotonic() + deadline_s
    skip: list[str] = []
    stuck = ""
    while True:
        told, why = _ask(environ, deadline, deadline_s, skip)
        if told.done or told.missing or why is None or why.missing == "timeout" or len(skip) >= _CRASHES:
            break
        crashed = f"{told.last_call} {told.last_gpu}"
        if not told.last_call or crashed in skip:
            break
        skip.append(crashed)
        stuck = stuck or _named(told)
    return _nvml(told, why, stuck)


def _ask(
    environ: Mapping[str, str] | None, deadline: float, deadline_s: float, skip: list[str]
) -> tuple[_Told, Missing | None]:
    """What one child told, and why it did not tell all (None: it did)."""
    told = _Told({}, {})
    try:
        process = start_child(python_command(_MODULE, skip), environ)
    except (OSError, ValueError) as error:
        return told, missing_for(error, _MODULE)
    output: dict[int, bytearray] = {}
    ending: Ending = "late"
    try:
        ending = read_child(process, output, deadline)
    finally:
        gone = end_child(process)
    texts = [bytes(part) for part in output.values()]
    _read_lines(texts[0], told)
    if told.done or told.missing is not None:
        return told, None
    if ending == "late":
        left = "" if gone else f" (process {process.pid} survives SIGKILL)"
        return told, Missing("timeout", f"NVML: {_named(told)} did not answer within {deadline_s:g} s{left}")
    said = texts[1].decode("utf-8", "replace").strip()[-500:]
    ended = f"the child ended with {process.returncode}"
    return told, Missing("error", f"NVML: {ended} in {_named(told)}" + (f": {said}" if said else ""))


def _named(told: _Told) -> str:
    if not told.last_call:
        return "nvidia-ml-py"
    return told.last_call if told.last_gpu is None else f"{told.last_call} of GPU {told.last_gpu}"


def _read_lines(output: bytes, told: _Told) -> None:
    """Take in whole lines; the last one may have been cut."""
    for text in output.split(b"\n"):
        try:
            line = msgspec.json.decode(text, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if line.done:
            told.done = True
        elif line.missing is not None:
            told.missing = decode(text, Missing)
        elif line.call is not None:
            told.last_call, told.last_gpu = line.call, line.gpu
        elif line.field is not None and line.gpu is None:
            told.driver[line.field] = line.value
        elif line.field is not None and line.gpu is not None:
            told.gpus.setdefault(line.gpu, {})[line.field] = line.value


def _nvml(told: _Told, why: Missing | None, stuck: str) -> Nvml:
    if told.missing is not None and not told.driver:
        return Nvml(told.missing, told.missing)
    rest = why or told.missing or Missing("error", "NVML: the call crashed")
    driver = GpuDriver(
        version=_value(told.driver.get("version"), str, rest),
        cuda=_value(told.driver.get("cuda"), str, rest),
        answered_after_s=_value(told.driver.get("answered_after_s"), float, rest),
        stuck_call=_named(told) if why is not None else stuck,
        stuck_why=rest.detail if why is not None else "it crashed" if stuck else "",
    )
    if why is not None and not told.last_call:
        return Nvml(why, why)  # not even the package answered: that is no driver's fault
    if told.missing is not None or (not told.gpus and why is not None):
        return Nvml(told.missing or rest, driver)
    gpus = tuple(_gpu(index, values, rest) for index, values in sorted(told.gpus.items()))
    return Nvml(tuple(described_gpu(gpu) for gpu in gpus), driver)


def described_gpu(gpu: Gpu) -> Gpu:
    """The same with its processes named, and those of this run marked."""
    processes = gpu.state.processes
    if isinstance(processes, Missing):
        return gpu
    return replace(gpu, state=replace(gpu.state, processes=described(processes)))


def _gpu(index: int, values: dict[str, Any], rest: Missing) -> Gpu:
    lost = values.get("lost")
    untold = rest if lost is None else _missing(lost, rest)
    state = {name: values[name] for name in _STATE_FIELDS if name in values}
    state |= {name: _plain(untold) for name in _STATE_FIELDS if name not in values}
    document = {"index": index, "state": state}
    document |= {name: values.get(name, _plain(untold)) for name in _OWN_FIELDS}
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
