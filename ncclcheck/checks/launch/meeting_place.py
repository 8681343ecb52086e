"""NC116 meeting-place."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import MeetingView, Snapshot

# Filesystems of one machine (proc_filesystems(5)); what may be shared (nfs, lustre, gpfs, fuse.*, ...) is not listed.
LOCAL = frozenset(
    {
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "tmpfs",
        "ramfs",
        "overlay",
        "aufs",
        "f2fs",
        "vfat",
        "squashfs",
    }
)


@check("NC116", "meeting-place", "All nodes find each other in the folder of --meet-in")
def meeting_place(snapshot: Snapshot) -> Iterator[Answer]:
    """The folder of `--meet-in` is one and the same on all nodes, and each can read and write there.

    ## Why it matters
    Where TCP between the nodes is blocked, the folder is the only place where what they see can come together. A folder
    that each node has for itself, such as /tmp, brings nobody together, and nothing says so but silence.

    ## How to fix
    Name a folder on a filesystem that all nodes mount (NFS, Lustre, GPFS, ...), at the same path, that your user may
    write. `df DIR` on two nodes shows what is mounted there.

    ## Source
    Each node leaves a mark in the folder and looks for those of the others; node 0 shows there that it is alive. The
    type of the filesystem is that of /proc/self/mountinfo.
    """
    views = snapshot.meetings
    if not views:
        yield NotApplicable("no folder to meet in was named")
        return
    for view in views:
        if view.outcome == "unusable":
            yield _unusable(view)
    apart = [view for view in views if view.outcome in ("alone", "headless") and view.first_node_there]
    # What others say of themselves says it all: node 0 is then alone in its own folder, whatever it is on.
    explained = apart or any(view.outcome == "unusable" for view in views)
    local = (
        []
        if explained
        else [
            meeting_view
            for meeting_view in views
            if meeting_view.outcome == "alone" and meeting_view.filesystem in LOCAL
        ]
    )
    if apart:
        yield _apart(apart)
    if local:
        yield _local(local)
    for view in views:
        if view.outcome in ("alone", "headless") and not explained and view not in local:
            yield _nobody(view)


def _unusable(view: MeetingView) -> Finding:
    return Finding(
        "error",
        f"{view.host} cannot use {view.path} to meet the other nodes: {view.detail}",
        (view.host,),
        (_evidence(view, view.detail, "a folder that can be read and written"),),
        (
            Fix(
                "name a folder that exists on every node, and that your user may write",
                (f"ls -ld {view.path}",),
            ),
        ),
    )


def _apart(views: list[MeetingView]) -> Finding:
    hosts, first = tuple(view.host for view in views), views[0]
    kind = f" ({first.filesystem} there)" if first.filesystem else ""
    return Finding(
        "error",
        f"{first.path} is not shared: node 0 is up and waits in its own, and {named(hosts)} "
        f"{verb(hosts, 'does', 'do')} not see it there{kind}",
        hosts,
        tuple(_evidence(view, _saw(view), "the mark of node 0, which is reached by TCP") for view in views),
        (_fix(first),),
    )


def _local(views: list[MeetingView]) -> Finding:
    hosts, first = tuple(view.host for view in views), views[0]
    return Finding(
        "error",
        f"{first.path} is on {first.filesystem} on {named(hosts)}, a filesystem of that machine alone: "
        "no other node can be met there",
        hosts,
        tuple(_evidence(view, _saw(view), "marks of other nodes") for view in views),
        (_fix(first),),
    )


def _nobody(view: MeetingView) -> Finding:
    who = "other nodes, but not node 0," if view.outcome == "headless" else "no other node"
    tail = (
        "node 0 was not started"
        if view.outcome == "headless"
        else "it is not shared, or they were not started"
    )
    return Finding(
        "warning",
        f"{view.host} met {who} in {view.path} in {view.waited_s:.0f} s: {tail}",
        (view.host,),
        (_evidence(view, _saw(view), "node 0 and all others"),),
        (_fix(view),),
    )


def _evidence(view: MeetingView, observed: str, expected: str) -> Evidence:
    return Evidence((view.host,), f"folder {view.path}", observed, expected, "marks in the folder")


def _saw(view: MeetingView) -> str:
    kind = f" on {view.filesystem}" if view.filesystem else ""
    return f"{named(view.others) or 'only its own mark'}{kind} in {view.waited_s:.0f} s"


def _fix(view: MeetingView) -> Fix:
    return Fix(
        "name a folder on a filesystem that all nodes mount at the same path",
        (f"df -hT {view.path}   # on two nodes: the same server and path must be there",),
    )
