"""Whether a process group gets its GPU when it is made, which depends on torch's version."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from packaging.version import InvalidVersion, Version

# Groups that were given a device hang at random after 2.6.0 until before 2.7.1 (pytorch/pytorch#153960).
_HANGS_AFTER, _HANGS_BEFORE = Version("2.6.0"), Version("2.7.1")


def device_id(init_process_group: Callable[..., Any], torch_version: str, device: Any) -> dict[str, Any]:
    """Return the arguments of `init_process_group` that bind it to `device`: none for a CPU, or where they do harm.

    torch knows `device_id` since 2.3, and NVIDIA's builds have it in versions of their own, so the function is asked.
    """
    if device.type != "cuda" or "device_id" not in inspect.signature(init_process_group).parameters:
        return {}
    return {} if _hangs(torch_version) else {"device_id": device}


def _hangs(torch_version: str) -> bool:
    """Return whether a group with a device may hang; builds between releases, as 2.7.0a0+x.nv25.03, count too."""
    try:
        version = Version(torch_version)
    except InvalidVersion:
        return False
    return Version(version.public) > _HANGS_AFTER and version < _HANGS_BEFORE
