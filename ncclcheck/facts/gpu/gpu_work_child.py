"""Child process: asks torch for its GPUs and architectures, or lets one GPU multiply matrices and checks the result.

Arguments: `list`, or `work` and how many GPUs. Lines of JSON on stdout: {"stage", "at_s"} before each part, since any
of them can hang, and one {"answer": {...}} at the end. Each GPU has a process of its own, whose lines name its "gpu".
Meanwhile {"waited_s"} says how long that process was ready to run and had no core: then it is not the GPU that hangs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from ncclcheck import timeouts
from ncclcheck.facts.orphan import die_with_parent
from ncclcheck.model.gpu import OPENING_STAGE

SIZE = 512
# Factors up to 6: every sum is below 512 * 36, which float32 (and TF32) holds exactly in whatever order it is added.
FACTORS = 7
_BEGAN = time.monotonic()
_GPU: dict[str, object] = {}  # in the process of a GPU: its ordinal, which every line names


def main() -> None:
    """Say the stage, then do it."""
    _say(stage="import", at_s=0.0)
    try:
        import torch
    except Exception as error:
        _say(answer={"error": f"torch cannot be imported: {type(error).__name__}: {error}"[:500]})
        return
    if sys.argv[1] == "list":
        _say(answer=_listed(torch))
        return
    _work_on_each(torch, int(sys.argv[2]))


def _work_on_each(torch: Any, count: int) -> None:
    """Fork a process for each GPU, since any of them can hang or die, and say how it ended.

    torch is imported once, before: eight imports at once take longer than the deadline on few cores.
    """
    gpu_of: dict[int, int] = {}
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for ordinal in range(count):
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            die_with_parent(parent)
            _process_of(torch, ordinal)
        gpu_of[pid] = ordinal
    while gpu_of:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            _say(gpu=gpu_of.pop(pid), exit=os.waitstatus_to_exitcode(status))
            continue
        signal.sigtimedwait({signal.SIGCHLD}, timeouts.GPU_WORK_LOOK_S)
        for pid, ordinal in gpu_of.items():
            _say(gpu=ordinal, waited_s=round(waited_for_a_core_s(pid), 3))


def waited_for_a_core_s(pid: int) -> float:
    """Return how long the thread of a process that waited longest was on a run queue; 0 where it is unknown.

    Of /proc/PID/task/N/schedstat (Linux Documentation/scheduler/sched-stats.rst).
    """
    waited_ns = 0
    with suppress(OSError, ValueError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            waited_ns = max(waited_ns, int((thread / "schedstat").read_text().split()[1]))
    return waited_ns / 1e9


def _process_of(torch: Any, ordinal: int) -> NoReturn:
    _GPU["gpu"] = ordinal
    try:
        _say(answer=work(torch, ordinal))
    except Exception as error:
        _say(answer={"outcome": "failed", "detail": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _say(**line: object) -> None:
    """Write one line past all buffers: the next step may end this process."""
    os.write(1, json.dumps({**_GPU, **line}).encode() + b"\n")


def _stage(name: str) -> None:
    _say(stage=name, at_s=round(time.monotonic() - _BEGAN, 3))


def _listed(torch: Any) -> dict[str, object]:
    """Return how many GPUs torch may use, and what it was built for, which it knows without any GPU."""
    _stage("count")
    count = count_gpus(torch)
    _stage("architectures")
    built = getattr(torch._C, "_cuda_getArchFlags", None)
    flags = built() if built is not None else None
    architectures = flags.split() if flags else list(torch.cuda.get_arch_list())
    _stage("nccl")
    return {"count": count, "architectures": architectures, "nccl": nccl_version(torch)}


def count_gpus(torch: Any) -> int:
    """Return how many GPUs CUDA gives to a process.

    torch.cuda.device_count() asks NVML, which counts whole GPUs where CUDA gives one MIG instance.
    """
    asked = getattr(torch._C, "_cuda_getDeviceCount", None)
    return int(torch.cuda.device_count() if asked is None else asked())


def nccl_version(torch: Any) -> str | None:
    """Return the NCCL that torch was compiled with; None for a torch without NCCL."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_nccl_available():
        return None
    version = torch.cuda.nccl.version()  # (2, 27, 5), and before torch 1.10 the number 2708
    return ".".join(map(str, version[:3])) if isinstance(version, tuple) else str(version)


def work(torch: Any, ordinal: int) -> dict[str, object]:
    """Open the GPU of that number and let it multiply; return the outcome, `hidden` where CUDA does not give it."""
    _stage("count the GPUs")
    if ordinal >= torch.cuda.device_count():
        return {"outcome": "hidden"}
    _stage(OPENING_STAGE)
    if 0 < count_gpus(torch) <= ordinal:  # 0: CUDA cannot begin, and opening it says why
        return {"outcome": "hidden"}
    device = torch.device("cuda", ordinal)
    torch.cuda.set_device(device)
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    is_instance = " MIG " in getattr(properties, "name", "")  # the UUID is then the instance's, not the GPU's
    _say(uuid=None if uuid is None or is_instance else f"GPU-{uuid}")
    _stage("multiply")
    is_right = multiply(torch, device)
    _stage("close")
    return {"outcome": "ok" if is_right else "wrong-result", "detail": ""}


def multiply(torch: Any, device: Any) -> bool:
    """Return whether the device multiplies two matrices of small whole numbers exactly."""
    rows = torch.arange(SIZE).unsqueeze(1)
    columns = torch.arange(SIZE).unsqueeze(0)
    left = (rows * 3 + columns) % FACTORS
    right = (rows + columns * 5) % FACTORS
    product = left.to(device, torch.float32) @ right.to(device, torch.float32)
    return bool(torch.equal(product.cpu().to(torch.int64), left @ right))


if __name__ == "__main__":
    main()
