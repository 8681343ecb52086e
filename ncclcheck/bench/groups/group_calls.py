"""torch.distributed as one group of ranks sees it: ranks are counted within the group.

`measure/collectives.py` binds its calls to this as it does to torch.distributed itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class GroupCalls:
    """The calls of one group. A class because it stands where torch.distributed does, and remembers what is on its way.

    `overlapped`: a call returns at once, and `wait` waits for all that were made.
    """

    def __init__(self, dist: Any, group: Any, ranks: Sequence[int], *, overlapped: bool = False) -> None:
        self._dist, self._group, self._ranks, self._overlapped = dist, group, ranks, overlapped
        self._works: list[Any] = []
        self.isend, self.irecv = dist.isend, dist.irecv

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Return the collective of that name, which has no root, in this group. Raises AttributeError as torch does."""
        function = getattr(self._dist, name)
        return lambda *tensors: self._made(function(*tensors, group=self._group, async_op=self._overlapped))

    def broadcast(self, tensor: Tensor, root: int) -> None:
        """Broadcast from a rank of the group."""
        self._rooted(self._dist.broadcast, root, tensor)

    def reduce(self, tensor: Tensor, root: int) -> None:
        """Add up at a rank of the group."""
        self._rooted(self._dist.reduce, root, tensor)

    def gather(self, send: Tensor, parts: list[Tensor] | None, root: int) -> None:
        """Gather at a rank of the group."""
        self._rooted(self._dist.gather, root, send, parts)

    def scatter(self, recv: Tensor, parts: list[Tensor] | None, root: int) -> None:
        """Scatter from a rank of the group."""
        self._rooted(self._dist.scatter, root, recv, parts)

    def P2POp(self, operation: Any, tensor: Tensor, peer: int) -> Any:  # noqa: N802 (torch's name)
        """Return a transfer to or from a rank of the group."""
        return self._dist.P2POp(operation, tensor, self._ranks[peer], group=self._group)

    def batch_isend_irecv(self, transfers: Sequence[Any]) -> Sequence[Any]:
        """Start the transfers; return what there is to wait for now."""
        works = list(self._dist.batch_isend_irecv(transfers))
        if not self._overlapped:
            return works
        self._works += works
        return []

    def wait(self) -> None:
        """Wait for all calls that were made."""
        for work in self._works:
            work.wait()
        self._works.clear()

    def _rooted(self, function: Callable[..., Any], root: int, *values: Any) -> None:
        self._made(function(*values, self._ranks[root], group=self._group, async_op=self._overlapped))

    def _made(self, work: Any) -> None:
        if self._overlapped:
            self._works.append(work)
