"""NC115 host-unreachable."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot, Unreached, UnreachedCause

# What it is called in a sentence, and what to do; {host} and {python} are filled in.
_CAUSES: dict[UnreachedCause, tuple[str, str, tuple[str, ...]]] = {
    "name-unknown": (
        "the name is not known to ssh here",
        "correct the name in --hosts, or let DNS, /etc/hosts or ~/.ssh/config know it",
        ("getent hosts {host}", "ssh -G {host} | grep ^hostname"),
    ),
    "refused": (
        "nothing listens at its ssh port",
        "start sshd there, or name its port in ~/.ssh/config",
        ("ssh -G {host} | grep -E '^(hostname|port)'",),
    ),
    "timed-out": (
        "its ssh port gives no answer: the host is down, or a firewall drops the packets",
        "see whether the host is up, and allow ssh to it from here",
        ("ping -c 3 {host}", "nc -vz -w 5 {host} 22"),
    ),
    "no-route": (
        "there is no way to it from here: the host is down, or a route is missing",
        "see whether the host is up, and how packets go there",
        ("ping -c 3 {host}", "ip route get $(getent hosts {host} | cut -d' ' -f1)"),
    ),
    "host-key": (
        "its host key is not the one that is known here, or none is known: this may be another machine than you think",
        "make sure that it is the right machine, by the fingerprint that its administrator gives; then renew the key",
        ("ssh-keygen -R {host}   # only after that: forgets the old key", "ssh {host} true   # asks about the new one"),
    ),
    "denied": (
        "it does not let this user in without a password",
        "install your public key there, load it into your ssh agent, or give the user as user@{host}",
        ("ssh-add -l", "ssh-copy-id {host}", "ssh -v {host} true"),
    ),
    "closed": (
        "ssh ended before it could start anything",
        "try it by hand; with many hosts through one jump host, MaxStartups of its sshd may be too small",
        ("ssh -v {host} true",),
    ),
    "no-ssh": ("there is no ssh client here", "install one (openssh-client), or name it with --ssh", ()),
    "not-started": (
        "this machine could not start one more ssh: a limit of its own was reached",
        "raise the limits here, or check the hosts in several runs",
        ("ulimit -Hn; ulimit -Hu", "free -h"),
    ),
    "no-python": (
        "the Python that runs here is not there",
        "install the same environment there, or name the Python of that host with --remote-python",
        ("ssh {host} 'command -v python3'",),
    ),
    "no-ncclcheck": (
        "ncclcheck is not installed there, in the Python that was started",
        "install it there, or name the Python that has it with --remote-python",
        ("ssh {host} 'python3 -m pip install ncclcheck'",),
    ),
    "other-version": (
        "another version of ncclcheck is there",
        "install the same version on all hosts and here",
        ("ssh {host} 'python3 -m pip install --upgrade ncclcheck'",),
    ),
    "garbage": (
        "what came from it is not what ncclcheck says",
        "see what its shell prints for a command without a terminal, and end that in its startup files",
        ("ssh {host} true | head",),
    ),
    "ended": (
        "ncclcheck was started there and ended at once",
        "start it there by hand and see what it says",
        ("ssh {host} 'python3 -m ncclcheck preflight'",),
    ),
    "silent": (
        "ncclcheck was started there and said nothing in time",
        "see what holds up the host: a login script that waits, a home that hangs, a load; or give a longer "
        "--join-timeout",
        ("time ssh {host} true",),
    ),
    "lost": (
        "the connection to it was lost in the middle of the run, or ncclcheck was killed there",
        "see whether the host is still up, and what its kernel says",
        ("ssh {host} 'uptime; dmesg | tail'",),
    ),
}  # fmt: skip


@check("NC115", "host-unreachable", "ncclcheck ran on every host of --hosts")
def host_unreachable(snapshot: Snapshot) -> Iterator[Answer]:
    """Every host that was named could be reached by ssh and could run ncclcheck to the end.

    ## Why it matters
    What was not looked at is not known to be fit. And a host that its operator cannot reach is often one that a job
    would not reach either: it is down, newly installed (another host key), or without the environment of the others.

    ## How to fix
    The finding carries ssh's own words. Try `ssh HOST true` from the same shell: it must work without a question. Host
    keys are never passed over here: renew a changed one only when you know why it changed. The same ncclcheck must be
    installed on the hosts; `--remote-python` names the Python that has it.

    Such a host is not known to be sick, so this is a warning, and the run ends with exit code 3 (could not tell).

    ## Source
    The messages and exit status 255 of OpenSSH's client (ssh(1); sshconnect.c), 126 and 127 of the shell (POSIX, sh).
    """
    if isinstance(snapshot.unreached, Missing):
        yield NotApplicable(snapshot.unreached.detail)
        return
    groups: dict[tuple[UnreachedCause, str], list[Unreached]] = {}
    for unreached in snapshot.unreached:
        words = unreached.detail.replace(unreached.host, "HOST")
        groups.setdefault((unreached.cause, words), []).append(unreached)
    for (cause, _), alike in groups.items():
        yield _finding(cause, alike)


def _finding(cause: UnreachedCause, alike: list[Unreached]) -> Finding:
    hosts = tuple(unreached.host for unreached in alike)
    what, todo, commands = _CAUSES[cause]
    first = hosts[0]
    was = verb(hosts, "was", "were")
    return Finding(
        "warning",
        f"{named(hosts)} {was} not checked: {what} ({alike[0].detail})",
        hosts,
        tuple(
            Evidence(
                (unreached.host,),
                f"ssh after {unreached.seconds:.1f} s",
                unreached.detail,
                "an answer of ncclcheck",
                "ssh",
            )
            for unreached in alike
        ),
        (
            Fix(
                todo.replace("{host}", first), tuple(command.replace("{host}", first) for command in commands)
            ),
        ),
    )
