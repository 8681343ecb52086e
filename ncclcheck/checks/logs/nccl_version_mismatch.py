"""NC915 nccl-version-mismatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._reruns import run_of
from ncclcheck.checks.logs._view import remarks, troubles
from ncclcheck.model.events import CommInit, Log, Remark
from ncclcheck.model.finding import Fix

_TWO = 2


@cause(
    "NC915",
    "nccl-version-mismatch",
    "NCCL versions differ between ranks",
    explains=(
        "firewall-blocked-ports",
        "rank-exception",
        "collective-mismatch",
        "world-size-mismatch",
        "port-scanner",
    ),
    between_nodes=True,
    fixes=(
        Fix(
            "use the same NCCL version (same container image, same nvidia-nccl wheel, same LD_LIBRARY_PATH) "
            "on all nodes",
            (
                "python -c 'import torch; print(torch.cuda.nccl.version())'   # on every node",
                "ncclcheck preflight --select nccl-differs",
            ),
        ),
    ),
)
def nccl_version_mismatch(log: Log) -> Iterator[Suspect]:
    """NCCL versions differ between ranks.

    ## Why it matters
    Different versions exchange messages of different sizes, so start-up fails or hangs.

    ## How to fix
    Use one image or environment on all nodes.

    ## Source
    NCCL bootstrap.cc (`Message truncated`, since 2.23 `Mismatched NCCL version detected`) and its version
    banner.
    """
    reports = remarks(log, "nccl-version")
    truncated = [remark for remark in remarks(log, "bootstrap-truncated") if "peer" not in remark.text]
    versions = versions_of_hosts(log)
    differ = any(len(of_run) > 1 for of_run in _versions_of_runs(log).values())
    if reports or (differ and troubles(log)):
        counts: dict[str, int] = {}
        for of_host in versions.values():
            for version in of_host:
                counts[version] = counts.get(version, 0) + 1
        odd = odd_hosts(log, versions)
        yield suspect(
            "The NCCL versions of the ranks differ"
            + (f" ({', '.join(sorted(counts))})." if len(counts) > 1 else "."),
            [*reports, *truncated, *remarks(log, "nccl-banner")],
            confidence="certain" if reports or truncated else "likely",
            at=(reports or truncated or remarks(log, "nccl-banner") or troubles(log))[0].place,
            hosts=odd,
        )
    elif signs := _unfit_messages_of_two_versions(log):
        banners = remarks(log, "nccl-banner")
        yield suspect(
            f"Two NCCL versions started together ({', '.join(sorted(_of_banners(banners)))}), and exchange messages "
            "that do not fit.",
            [*signs, *banners],
            confidence="likely",
            at=signs[0].place,
            explains=("port-scanner", "ifname-missing", "rank-exception", "world-size-mismatch"),
        )
    elif truncated:
        # Several hosts have the same version, or they are on different networks: then it is another cause.
        networks = {process.network for process in log.processes if process.network}
        told_apart = bool(past_the_start(log, truncated)) or len(versions) > 1 or len(networks) > 1
        yield suspect(
            "A bootstrap message has an unexpected size: the ranks run different NCCL versions, or "
            "different programs.",
            truncated,
            confidence="possible" if told_apart else "likely",
        )


def _unfit_messages_of_two_versions(log: Log) -> list[Remark]:
    """Return NCCL's warnings of messages that do not fit, where two versions began and nothing ended between them."""
    banners = remarks(log, "nccl-banner")
    wrong_types = [remark for remark in remarks(log, "wrong-magic") if "wrong type" in remark.text]
    signs = [*remarks(log, "bad-family"), *wrong_types]
    of_a_stranger = len(remarks(log, "wrong-magic")) > len(wrong_types)
    if not signs or of_a_stranger or len(_of_banners(banners)) < _TWO:
        return []
    first = signs[0].place
    before = [
        banner for banner in banners if banner.place.file == first.file and banner.place.line < first.line
    ]
    worked = (event for event in log.events if isinstance(event, CommInit) and event.stage != "start")
    ended = (*troubles(log), *remarks(log, "finished"), *worked)
    lines = [*log.works.get(first.file, ()), *(e.place.line for e in ended if e.place.file == first.file)]
    begun = max((line for line in lines if line < first.line), default=0)
    return (
        signs if len(_of_banners([banner for banner in before if banner.place.line > begun])) >= _TWO else []
    )


def _of_banners(banners: Sequence[Remark]) -> set[str]:
    return {banner.values.get("nccl", "") for banner in banners} - {""}


def past_the_start(log: Log, truncated: Sequence[Remark]) -> tuple[CommInit, ...]:
    """Return the communicators that were complete before the message: their versions did agree."""
    first = truncated[0].place
    return tuple(
        event
        for event in log.events
        if isinstance(event, CommInit)
        and event.stage != "start"
        and (event.place.file, event.place.host) == (first.file, first.host)
        and event.place.line < first.line
    )


def versions_of_hosts(log: Log) -> dict[str, set[str]]:
    """Host -> NCCL versions that its processes or its errors name."""
    versions: dict[str, set[str]] = {}
    for process in log.processes:
        if process.nccl_version:
            versions.setdefault(process.host, set()).add(process.nccl_version)
    for banner in remarks(log, "nccl-banner"):
        if banner.place.host and banner.values.get("nccl"):
            versions.setdefault(banner.place.host, set()).add(banner.values["nccl"])
    return versions


def _versions_of_runs(log: Log) -> dict[int, set[str]]:
    """Return the versions of each command that a person ran; what one host ran one after the other need not agree."""
    found: dict[int, set[str]] = {}
    for process in log.processes:
        if process.nccl_version:
            found.setdefault(run_of(log, process.place.line), set()).add(process.nccl_version)
    for banner in remarks(log, "nccl-banner"):
        if banner.place.host and banner.values.get("nccl"):
            found.setdefault(run_of(log, banner.place.line), set()).add(banner.values["nccl"])
    return found


def odd_hosts(log: Log, versions: dict[str, set[str]]) -> tuple[str, ...]:
    """The hosts with the rarer version; where none is rarer, those without rank 0."""
    by_version: dict[str, list[str]] = {}
    for host, of_host in versions.items():
        for version in of_host:
            by_version.setdefault(version, []).append(host)
    if len(by_version) < 2:  # noqa: PLR2004
        return ()
    first_host = log.hosts_of_ranks.get(0, "")
    ordered = sorted(by_version.values(), key=lambda hosts: (first_host in hosts, -len(hosts)))
    fewest = min(len(hosts) for hosts in by_version.values())
    most = max(len(hosts) for hosts in by_version.values())
    if fewest < most:
        return tuple(host for hosts in by_version.values() if len(hosts) < most for host in hosts)
    return tuple(host for hosts in ordered if first_host not in hosts for host in hosts)
