"""Child process: imports what ncclcheck needs, and asks torch what it was built with, which needs no GPU."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

MARK = "ncclcheck-image "
BEGIN = "ncclcheck-importing "  # and the name of the module that may end this process
MODULES = (
    "click",
    "msgspec",
    "rich",
    "psutil",
    "netifaces",
    "pynvml",
    "ClusterShell.NodeSet",
    "numpy",
    "torch",
)


def main() -> None:
    """Print one line: MARK and a JSON object with the imports that failed, and what torch says of itself."""
    failed: dict[str, str] = {}
    for name in MODULES:
        _say(f"{BEGIN}{name}")
        try:
            import_module(name)
        except BaseException as error:  # a broken extension may raise anything, SystemExit included
            failed[name] = f"{type(error).__name__}: {error}"[:500]
    _say(BEGIN)
    answer: dict[str, object] = {"failed": failed, "torch": None}
    if "torch" not in failed:
        try:
            answer["torch"] = _torch_build(sys.modules["torch"])
        except Exception as error:
            answer["torch"] = {"error": f"{type(error).__name__}: {error}"[:500]}
    _say(f"{MARK}{json.dumps(answer)}")
    os._exit(0)  # no destructors of libraries that nothing was done with


def _say(line: str) -> None:
    os.write(1, f"\n{line}\n".encode())  # a module may have made something else of sys.stdout


def _torch_build(torch: Any) -> dict[str, object]:
    """Return how torch was built. torch.cuda.get_arch_list() is empty without a GPU; what it asks is not."""
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
    version = getattr(torch._C, "_nccl_version", None)
    return {
        "cuda": torch.version.cuda,
        "nccl": _nccl_text(version()) if version is not None else None,
        "architectures": flags.split() if flags else None,
    }


def _nccl_text(number: int | tuple[int, ...]) -> str:
    """Return the version as torch/cuda/nccl.py splits it: 16 bits for each part below the first."""
    if isinstance(number, tuple):
        return ".".join(map(str, number[:3]))
    return f"{number >> 32}.{number >> 16 & 0xFFFF}.{number & 0xFFFF}"


if __name__ == "__main__":
    main()
