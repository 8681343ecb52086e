"""The record of a section of NodeFacts: where it is read, and by which functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.tree import Folder
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.launch import Launch

if TYPE_CHECKING:
    from ncclcheck.facts.nccl.nccl_choice import Inquire


class FactsRequest(Struct, frozen=True):
    """What to collect: who we are in the job, the job's environment, the `--code` paths, and the time for it.

    `data_paths`, `shared_paths` and `checkpoint_paths` are those of `--data`, `--shared-dir` and `--checkpoint`.
    `ask_with` is how NCCL is asked: a listener's `inquire` keeps open what the library opens. None: it is asked once.
    """

    launch: Launch
    environment: Mapping[str, str]
    code_paths: tuple[str, ...] = ()
    data_paths: tuple[str, ...] = ()
    shared_paths: tuple[str, ...] = ()
    checkpoint_paths: tuple[str, ...] = ()
    mesh: Fact[Mesh | None] = None  # the job's parallel groups, as the command line says
    deadline_s: float = timeouts.FACTS_DEADLINE_S
    ask_with: Inquire | None = None

    @property
    def parts_s(self) -> float:
        """Return the time for the parts of a section that end by deadlines of their own."""
        return max(self.deadline_s - timeouts.FACTS_INNER_S, self.deadline_s / 2)


class Section(Struct, frozen=True):
    """One section of NodeFacts, or several that are read together.

    `sources` says where each is read, as docs/facts.md shows it, by the section's name. `read` returns the section from
    this machine, `read_tree` from the folder of a recorded one; None: a tree does not tell. For several sections both
    return a Struct whose fields are named after them.
    """

    sources: dict[str, str]
    read: Callable[[FactsRequest], Any]
    read_tree: Callable[[Folder], Any] | None = None

    def by_name(self, value: Any) -> dict[str, Any]:
        """Return the value of each section that was read."""
        if len(self.sources) == 1 or isinstance(value, Missing):
            return dict.fromkeys(self.sources, value)
        return {name: getattr(value, name) for name in self.sources}
