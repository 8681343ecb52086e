"""A real process group of one rank, which is enough for what a rank does by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    """This process is rank 0 of 1 of a gloo group."""
    import torch.distributed as dist

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()
