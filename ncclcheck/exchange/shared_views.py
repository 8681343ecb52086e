"""What the nodes say of the folders of `--shared-dir`, by node and path."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ncclcheck.exchange.roster import Member
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import SharedView


class SharedFolder(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder: why the mark could not be written (None: it was), whose marks were seen, why it is not removed."""

    path: str
    wrote: Missing | None
    saw: Fact[tuple[int, ...]]
    waited_s: float = 0.0
    left: str = ""


def views_of(
    agent: Member, hosts: Mapping[int, str], answer: Fact[tuple[SharedFolder, ...]], paths: tuple[str, ...]
) -> tuple[SharedView, ...]:
    """Return what a node says of each path that was asked for; Missing where it says nothing of it."""
    silence = Missing("timeout", f"{agent.host} did not tell what it found")
    folders: dict[str, SharedFolder] = {}
    if isinstance(answer, Missing):
        silence = answer
    else:
        folders = {folder.path: folder for folder in answer}
    views = []
    for path in map(readable, paths):
        seen = folders.get(path)
        if seen is None:
            views.append(SharedView(agent.host, path, silence, silence))
            continue
        saw: Fact[tuple[str, ...]] = seen.saw if isinstance(seen.saw, Missing) else ()
        if not isinstance(seen.saw, Missing):
            saw = tuple(hosts[ticket] for ticket in seen.saw if ticket in hosts)
        views.append(SharedView(agent.host, path, seen.wrote, saw, seen.waited_s, seen.left))
    return tuple(views)
