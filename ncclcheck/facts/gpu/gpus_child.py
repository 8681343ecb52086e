"""Child process: asks NVML and prints every answer at once, a line before each call, since any of them can hang.

Lines of JSON on stdout: {"call", "gpu", "at_s"} before a call, {"gpu", "field", "value"} after it, {"missing",
"detail"} where NVML gave no list at all, {"done": true} at the end. A value may be {"missing", "detail"}.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ncclcheck.facts.gpu.gpu_values import Reader, bus_address, identity, peer_status, state

_DESCRIPTOR = 1
LIBRARY = "libnvidia-ml.so.1"


class Asked:
    """NVML's answers, each printed as it comes. `skip`: calls, as printed, that are not made, each with its Missing."""

    def __init__(self, pynvml: Any, skip: dict[str, dict[str, str]]) -> None:
        self.pynvml = pynvml
        self._skip = skip
        self._began = time.monotonic()

    def say(self, **line: object) -> None:
        """Write one line at once, so that it is there whatever happens next."""
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(_DESCRIPTOR, data) :]

    def call(self, name: str, gpu: int | None, function: Callable[[], Any]) -> Any:
        """Return the function's value; raises what it raises, or _SkippedError."""
        if f"{name} {gpu}" in self._skip:
            raise _SkippedError(self._skip[f"{name} {gpu}"])
        self.say(call=name, gpu=gpu, at_s=round(time.monotonic() - self._began, 3))
        return function()

    def first(self, gpu: int | None, readers: tuple[Reader, ...]) -> Any:
        """Return the value of the first reader that this driver and this package know, or the last one's Missing."""
        answer: Any = {"missing": "unsupported", "detail": "not asked"}
        for name, read in readers:
            try:
                return self.call(name, gpu, read)
            except _SkippedError as skipped:
                return skipped.why
            except AttributeError:
                answer = {"missing": "unsupported", "detail": f"this nvidia-ml-py has no {name}"}
            except self.pynvml.NVMLError as error:
                answer = missing_for(self.pynvml, error)
                if answer["missing"] != "unsupported":
                    return answer
            except (
                Exception
            ) as error:  # NVMLLibraryMismatchError: this library does not have it under that name
                is_old = type(error).__name__ == "NVMLLibraryMismatchError"
                answer = {"missing": "unsupported" if is_old else "error", "detail": f"NVML: {error}"}
        return answer

    def driver(self) -> int | None:
        """Initialise, say what concerns the driver, and return the number of GPUs; None where there is no list."""
        nvml = self.pynvml
        try:
            self.call("nvmlInit", None, nvml.nvmlInit)
        except (nvml.NVMLError, _SkippedError) as error:
            self.say(**missing_for(nvml, error))
            return None
        took = round(time.monotonic() - self._began, 3)
        self.say(gpu=None, field="answered_after_s", value=took)
        version: tuple[Reader, ...] = (
            ("nvmlSystemGetDriverVersion", lambda: text(nvml.nvmlSystemGetDriverVersion())),
        )
        cuda: tuple[Reader, ...] = (
            (
                "nvmlSystemGetCudaDriverVersion_v2",
                lambda: cuda_text(nvml.nvmlSystemGetCudaDriverVersion_v2()),
            ),
            ("nvmlSystemGetCudaDriverVersion", lambda: cuda_text(nvml.nvmlSystemGetCudaDriverVersion())),
        )
        self.say(gpu=None, field="version", value=self.first(None, version))
        self.say(gpu=None, field="cuda", value=self.first(None, cuda))
        try:
            return int(self.call("nvmlDeviceGetCount", None, nvml.nvmlDeviceGetCount))
        except (nvml.NVMLError, _SkippedError) as error:
            self.say(**missing_for(nvml, error))
            return None

    def handles(self, count: int) -> dict[int, Any]:
        """Return the handle of each GPU by index.

        One that fell off the bus still has an index, and is said to be lost.
        """
        found = {}
        for index in range(count):
            self.say(gpu=index, field="index", value=index)
            reader = ("nvmlDeviceGetHandleByIndex", lambda i=index: self.pynvml.nvmlDeviceGetHandleByIndex(i))
            answer = self.first(index, (reader,))
            if isinstance(answer, dict):
                self.say(gpu=index, field="lost", value=answer)
            else:
                found[index] = answer
        return found


class _SkippedError(Exception):
    """This call killed or held up an earlier child."""

    def __init__(self, why: dict[str, str]) -> None:
        super().__init__(why["detail"])
        self.why = why


def main() -> None:
    """Ask everything; what GPUs are comes before how they are, so that a hang costs as little as can be."""
    try:
        import pynvml
    except ImportError as error:
        detail = f"the package nvidia-ml-py cannot be imported: {error}"
        sys.stdout.write(json.dumps({"missing": "unsupported", "detail": detail}) + "\n")
        return
    asked = Asked(pynvml, json.loads(sys.argv[1]))
    count = asked.driver()
    if count is None:
        return
    handles = asked.handles(count)
    for table in (identity, state):
        for index, handle in handles.items():
            for field, readers in table(pynvml, handle).items():
                asked.say(gpu=index, field=field, value=asked.first(index, readers))
    for index, handle in handles.items():
        asked.say(gpu=index, field="nvlinks", value=_links(asked, index, handle))
    for index in handles:
        asked.say(gpu=index, field="peers", value=_peers(asked, index, handles))
    asked.say(done=True)


def _links(asked: Asked, index: int, handle: Any) -> object:
    """Return the links that NVML knows of; it refuses the number after the last as an invalid argument."""
    nvml = asked.pynvml
    links: list[dict[str, object]] = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            active = asked.call(
                f"nvmlDeviceGetNvLinkState({link})",
                index,
                partial(nvml.nvmlDeviceGetNvLinkState, handle, link),
            )
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_INVALID_ARGUMENT:
                break
            answer = missing_for(nvml, error)
            if error.value == nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                return answer
            if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
                links.append({"link": link, "active": answer})
        except _SkippedError as skipped:
            links.append({"link": link, "active": skipped.why})
        else:
            links.append({"link": link, "active": bool(active)})
            if active:
                reader = (f"nvmlDeviceGetNvLinkRemotePciInfo({link})", partial(_remote, nvml, handle, link))
                links[-1]["remote"] = asked.first(index, (reader,))
    return links


def _remote(nvml: Any, handle: Any, link: int) -> str:
    return bus_address(text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId))


def _peers(asked: Asked, index: int, handles: dict[int, Any]) -> object:
    peers = []
    for peer, handle in handles.items():
        if peer == index:
            continue
        answer = asked.first(index, (_peer_reader(asked.pynvml, handles[index], handle),))
        if isinstance(answer, dict):
            return answer
        peers.append({"peer": peer, "status": answer})
    return peers


def _peer_reader(pynvml: Any, handle: Any, peer: Any) -> Reader:
    return "nvmlDeviceGetP2PStatus", lambda: peer_status(pynvml, handle, peer)


def text(value: bytes | str) -> str:
    """Return the text; pynvml gives bytes or str, by its version."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def cuda_text(number: int) -> str:
    """Return `12.8` for 12080 (nvml.h: NVML_CUDA_DRIVER_VERSION_MAJOR and _MINOR)."""
    return f"{number // 1000}.{number % 1000 // 10}"


def missing_for(pynvml: Any, error: Exception) -> dict[str, str]:
    """Return the Missing, as a dict, that says what an NVML error means for a value."""
    if isinstance(error, _SkippedError):
        return error.why
    value = getattr(error, "value", None)
    if value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return _unloadable(LIBRARY)
    why = {
        pynvml.NVML_ERROR_NO_PERMISSION: "denied",
        pynvml.NVML_ERROR_TIMEOUT: "timeout",
        pynvml.NVML_ERROR_NOT_SUPPORTED: "unsupported",
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "unsupported",
        getattr(pynvml, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", 25): "unsupported",
    }.get(value, "error")
    return {"missing": why, "detail": f"NVML: {error}"}


def _unloadable(library: str) -> dict[str, str]:
    """Return why the loader does not load it: only where it finds no such file is there no driver."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        if not str(error).startswith(f"{library}: cannot open shared object file: No such file"):
            return {"missing": "error", "detail": f"NVML: the driver's library cannot be loaded: {error}"}
    return {
        "missing": "absent",
        "detail": f"{library} is not there: no NVIDIA driver, or a container without it",
    }


if __name__ == "__main__":
    main()
