"""NC943 nccl-or-driver-bug."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._reruns import mended_by_version
from ncclcheck.checks.logs._view import culprits, exceptions, matches, remarks, troubles, versions_of
from ncclcheck.logs.messages.defects import Defect, of_versions
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_FIRST_FRAMES = 3  # lines after the crash


@cause(
    "NC943",
    "nccl-or-driver-bug",
    "A known defect of NCCL, PyTorch or the driver",
    explains=("roce-gid", "rank-exception", "ib-link-or-fabric"),
    fixes=(
        Fix(
            "upgrade NCCL (2.26 or newer for the RoCE version read), PyTorch or the driver; try another "
            "version of it first",
            ("pip install --upgrade nvidia-nccl-cu12   # in a copy of the environment",),
        ),
    ),
)
def nccl_or_driver_bug(log: Log) -> Iterator[Suspect]:
    """The lines show a defect in NCCL, PyTorch or the driver that another version fixes.

    ## Why it matters
    No setting of the cluster fixes it; at best there is a workaround.

    ## How to fix
    Use a version without the defect.

    ## Source
    NVIDIA/nccl release notes and issue threads, a table of symptoms and versions
    (`ncclcheck/logs/messages/defects.toml`); torch's INTERNAL ASSERT.
    """
    if rerun := mended_by_version(log):
        failed, later = rerun
        found_out = suspect(
            f"The command failed with NCCL {', '.join(failed.versions)}, and ended well with "
            f"{', '.join(later.versions)}.",
            [*failed.wrong[:2], *failed.banners, *later.banners, *later.ends[:1]],
            confidence="likely",
            at=failed.wrong[0].place,
            explains=("rank-exception", "nccl-version-mismatch", "p2p-broken", "undetermined"),
        )
        yield replace(found_out, blames_nobody=True)
    if replaced := _went_well_with_another(log):
        found_out = suspect(
            "The job failed, and went well with another build or version of the NCCL library.",
            [*troubles(log)[:2], *replaced],
            confidence="likely",
            at=troubles(log)[0].place,
            explains=("rank-exception", "slow-rank-timeout", "p2p-broken", "undetermined"),
        )
        yield replace(found_out, blames_nobody=True)
    found = list(_known(log))
    fell = [*_fell_in_nccl(log), *_fell_in_c10d(log)]
    crashed = (*remarks(log, "nccl-crash", "torch-internal"), *fell)
    yield from found
    if crashed and not any(known.confidence == "likely" for known in found):
        yield suspect(
            "NCCL or PyTorch failed with an internal error.",
            crashed,
            confidence="likely" if remarks(log, "nccl-crash") or fell else "possible",
            hosts=culprits(log, [remark.place for remark in crashed]),
            explains=("rank-exception",)
            if (remarks(log, "nccl-crash") or fell) and not exceptions(log)
            else (),
        )


def _went_well_with_another(log: Log) -> list[Remark]:
    """Return the command with which a person replaced NCCL after the failure, and what the person says came of it."""
    failed = troubles(log)
    for command in remarks(log, "library-replaced") if failed and len(log.files) == 1 else ():
        good = [remark for remark in remarks(log, "went-well") if remark.place.line > command.place.line]
        if good and failed[-1].place.line < command.place.line:
            return [command, good[0]]
    return []


def _fell_in_nccl(log: Log) -> list[Remark]:
    """Return the first frame of a crash's stack if it is of NCCL; in a stack of a hang it would mean nothing."""
    crashes = [remark.place for remark in remarks(log, "crash")]
    return [
        frame
        for frame in remarks(log, "nccl-frame")
        if any(
            crash.file == frame.place.file and 0 <= frame.place.line - crash.line <= _FIRST_FRAMES
            for crash in crashes
        )
    ][:1]


def _fell_in_c10d(log: Log) -> list[Remark]:
    """Return torch's own assertions in a thread of its own: no call of the program stands above them."""
    return [
        remark
        for remark in remarks(log, "torch-internal")
        if "c10d" in remark.text and "thread terminated" in remark.text
    ]


def _known(log: Log) -> Iterator[Suspect]:
    """Yield the known defects whose symptom the log has, of versions that the log itself shows."""
    if not troubles(log):
        return
    for defect, version in of_versions(versions_of(log, "nccl"), versions_of(log, "torch")):
        lines = matches(defect.symptom, log.events)
        if lines:
            name = {"nccl": "NCCL", "torch": "PyTorch"}[defect.library]
            until = (
                f"fixed in {defect.fixed}"
                if defect.fixed
                else "not fixed in any release that ncclcheck knows"
            )
            yield suspect(
                f"{name} {version} has a known defect ({defect.thread}, {until}): {defect.what}.",
                lines,
                confidence=defect.certainty,
                fixes=(_upgrade(name, defect),),
                explains=None if defect.certainty == "likely" else (),
            )


def _upgrade(name: str, defect: Defect) -> Fix:
    newer = f"use {name} {defect.fixed} or newer" if defect.fixed else f"no {name} release has a fix yet"
    return Fix(f"{newer}; until then: {defect.workaround}", (defect.workaround,))
