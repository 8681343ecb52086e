"""NC712 clock-offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.links.clocks import Deviation, deviations
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot

WARNING_US = 1_000_000.0
INFO_US = 50_000.0
_PAIR = 2
_WHOLE_FROM = 1000  # three digits of a larger figure would be written with an exponent


@check("NC712", "clock-offset", "The clocks of all nodes agree", nodes=2, joined=True)
def clock_offset(snapshot: Snapshot) -> Iterator[Answer]:
    """No node's clock differs from the others by more than a second, beyond the error bound of the measurement.

    ## Why it matters
    NCCL and torch do not need synchronised clocks, but other parts of a job do. Kerberos and TLS reject a node that
    is minutes off. "Latest checkpoint" and caches on a shared filesystem use time stamps. After a hang, the logs of
    several nodes cannot be put in order. An offset of 50 ms or more is reported as information.

    ## How to fix
    Start a time daemon on the node (`chronyc tracking`, `timedatectl`) and give all nodes the same servers.

    ## Source
    Measured between the nodes with four time stamps per round trip (RFC 5905, 8): the true offset is within half of the
    quickest round trip. Offsets of further nodes are sums of such, and so are their bounds. When the processes were
    started is nowhere in it.
    """
    offsets = _offsets(snapshot)
    found = deviations(offsets)
    yield from _findings(
        [deviation for deviation in found if deviation.is_beyond(WARNING_US)], found, "warning"
    )
    minor = [
        deviation
        for deviation in found
        if deviation.is_beyond(INFO_US) and not deviation.is_beyond(WARNING_US)
    ]
    yield from _findings(minor, found, "info")
    measured_hosts = {deviation.host for deviation in found}
    if unmeasured := tuple(node.host for node in snapshot.nodes if node.host not in measured_hosts):
        yield NotKnown("the clock was not compared with the others", unmeasured)
    vague = tuple(deviation.host for deviation in found if deviation.bound_us > WARNING_US)
    if vague:
        yield NotKnown("the round trips are too slow to detect an offset of a second", vague)
    yield from not_reported(snapshot)


def _offsets(snapshot: Snapshot) -> dict[tuple[str, str], tuple[float, float]]:
    probes = () if isinstance(snapshot.probes, Missing) else snapshot.probes
    return {
        (probe.from_host, probe.to_host): (probe.value, probe.measured.least / 2)
        for probe in probes
        if probe.kind == "clock"
        and probe.outcome == "ok"
        and probe.value is not None
        and probe.measured is not None
        and probe.measured.least is not None
    }


def _findings(
    off: Sequence[Deviation], all_of_them: Sequence[Deviation], severity: Severity
) -> Iterator[Finding]:
    if not off:
        return
    worst = max(off, key=lambda estimate: abs(estimate.ahead_us))
    hosts = tuple(deviation.host for deviation in (all_of_them if len(all_of_them) == _PAIR else off))
    hosts_off = {deviation.host for deviation in off}
    usual = named(deviation.host for deviation in all_of_them if deviation.host not in hosts_off)
    if len(hosts) > len(off):
        apart = _time(abs(worst.ahead_us))
        which = f"the clocks of {named(hosts)} are {apart} apart (which of the two is right is not known)"
    elif len(off) == 1:
        which = f"the clock of {worst.host} is {_offset_text(worst)} that of {usual}"
    else:
        which = f"the clocks of {named(hosts)} are up to {_time(abs(worst.ahead_us))} off that of {usual}"
    why = (
        "time stamps of files and logs are wrong, and Kerberos or TLS may reject the node"
        if severity == "warning"
        else "logs of these nodes cannot be put in one order"
    )
    yield Finding(
        severity,
        f"{which}: {why}",
        hosts,
        tuple(
            Evidence(
                (deviation.host,),
                f"clock, against {usual or 'the others'}",
                f"{_offset_text(deviation)} it, within {_time(deviation.bound_us)}",
                f"within {_time(WARNING_US if severity == 'warning' else INFO_US)}",
                "four time stamps per round trip, the quickest one",
            )
            for deviation in off
        ),
        (
            Fix(
                f"start a time daemon {verb(hosts, 'there', 'on them')}, with the same servers on all nodes",
                ("timedatectl", "chronyc tracking"),
            ),
        ),
    )


def _offset_text(deviation: Deviation) -> str:
    return f"{_time(abs(deviation.ahead_us))} {'ahead of' if deviation.ahead_us > 0 else 'behind'}"


def _time(us: float) -> str:
    for unit, size in (("h", 3.6e9), ("s", 1e6), ("ms", 1e3)):
        if us >= size:
            figure = us / size
            return f"{figure:.3g} {unit}" if figure < _WHOLE_FROM else f"{figure:,.0f} {unit}"
    return f"{us:.0f} us"
