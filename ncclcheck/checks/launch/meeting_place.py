"""NC116 meeting-place."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

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
    """The folder of `--meet-in` is the same on all nodes, and every node can read and write there.

    ## Why it matters
    Where TCP between the nodes is blocked, the nodes can exchange their results only through the folder. A local
    folder such as /tmp is not shared, and the nodes then wait for each other until the timeout.

    ## How to fix
    Name a folder on a filesystem that all nodes mount (NFS, Lustre, GPFS, ...), at the same path, that your user may
    write. `df DIR` on two nodes shows what is mounted there.

    ## Source
    Each node leaves a mark in the folder and looks for those of the others; node 0 shows there that it is alive. The
    type of the filesystem is that of /proc/self/mountinfo.
    """
    views = snapshot.meetings
    if not views:
        yield NotApplicable("--meet-in was not given")
        return
    yield from _found(views)


def _found(views: tuple[MeetingView, ...]) -> Iterator[Finding]:
    """Yield what is wrong; in a folder where any user may remove files, that is said with it."""
    is_open = any(view.is_open for view in views)
    for finding in _causes(views):
        yield _of_open_folder(finding, views[0].path) if is_open else finding


def _of_open_folder(finding: Finding, path: str) -> Finding:
    why = f"{path} is writable for all users and has no sticky bit, so anybody may have removed or replaced files there"
    fix = Fix("name a folder that only your user may write, or set the sticky bit", (f"chmod +t {path}",))
    return replace(finding, summary=f"{finding.summary}; {why}", fixes=(*finding.fixes, fix))


def _causes(views: tuple[MeetingView, ...]) -> Iterator[Finding]:
    for view in views:
        if view.outcome == "unusable":
            yield _unusable(view)
        if view.outcome == "no-helper":
            yield _without_helper(view)
    apart = [view for view in views if view.outcome in ("alone", "headless") and view.first_node_there]
    # What others say of themselves says it all: node 0 is then alone in its own folder, whatever it is on.
    explained = apart or any(view.outcome in ("unusable", "no-helper") for view in views)
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


def _without_helper(view: MeetingView) -> Finding:
    """The folder may be fine: it is the process that works there for ncclcheck that is gone."""
    return Finding(
        "error",
        f"the process of ncclcheck that works in {view.path} for {view.host} {view.detail}, so {view.host} could not "
        "meet the other nodes there",
        (view.host,),
        (_evidence(view, f"its process {view.detail}", "a process that runs until the end"),),
        (
            Fix(
                "find out what killed it: the out-of-memory killer, a limit of the job, or a person",
                ("dmesg -T | grep -i 'killed process'",),
            ),
        ),
    )


def _apart(views: list[MeetingView]) -> Finding:
    hosts, first = tuple(view.host for view in views), views[0]
    kind = f" ({first.filesystem} there)" if first.filesystem else ""
    return Finding(
        "error",
        f"{first.path} is not shared: node 0 is up and uses its own folder, and {named(hosts)} "
        f"{verb(hosts, 'does', 'do')} not see it there{kind}",
        hosts,
        tuple(_evidence(view, _saw(view), "the file of node 0, which answers over TCP") for view in views),
        (_fix(first),),
    )


def _local(views: list[MeetingView]) -> Finding:
    hosts, first = tuple(view.host for view in views), views[0]
    return Finding(
        "error",
        f"{first.path} is on {first.filesystem} on {named(hosts)}, a local filesystem: other nodes "
        "cannot use it",
        hosts,
        tuple(_evidence(view, _saw(view), "files of other nodes") for view in views),
        (_fix(first),),
    )


def _nobody(view: MeetingView) -> Finding:
    if view.first:
        return _hangs(view)
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


def _hangs(view: MeetingView) -> Finding:
    """Node 0 was there, so the folder is shared: it is what became of node 0 that counts."""
    return Finding(
        "warning",
        f"node 0 ({view.first}) came to {view.path}, and {view.host} found no run of it there that is alive "
        f"in {view.waited_s:.0f} s: its process ended or hangs",
        (view.first,),
        (_evidence(view, _saw(view), "the run of node 0"),),
        (Fix(f"read the output of ncclcheck on {view.first}"),),
    )


def _evidence(view: MeetingView, observed: str, expected: str) -> Evidence:
    return Evidence((view.host,), f"folder {view.path}", observed, expected, "files in the folder")


def _saw(view: MeetingView) -> str:
    kind = f" on {view.filesystem}" if view.filesystem else ""
    return f"{named(view.others) or 'only its own file'}{kind} in {view.waited_s:.0f} s"


def _fix(view: MeetingView) -> Fix:
    return Fix(
        "name a folder on a filesystem that all nodes mount at the same path",
        (f"df -hT {view.path}   # on two nodes: the same server and path must be there",),
    )
