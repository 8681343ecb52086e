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
        "ssh cannot resolve the name",
        "correct the name in --hosts, or add it to DNS, /etc/hosts or ~/.ssh/config",
        ("getent hosts {host}", "ssh -G {host} | grep ^hostname"),
    ),
    "refused": (
        "nothing listens at its ssh port",
        "start sshd on the host, or set its port in ~/.ssh/config",
        ("ssh -G {host} | grep -E '^(hostname|port)'",),
    ),
    "timed-out": (
        "its ssh port does not answer: the host is down, or a firewall drops the packets",
        "make sure that the host is up and that ssh to it is allowed",
        ("ping -c 3 {host}", "nc -vz -w 5 {host} 22"),
    ),
    "no-route": (
        "it is unreachable from here: the host is down, or a route is missing",
        "make sure that the host is up, and check the route to it",
        ("ping -c 3 {host}", "ip route get $(getent hosts {host} | cut -d' ' -f1)"),
    ),
    "host-key": (
        "its host key is unknown or has changed: this may be a different machine",
        "compare the fingerprint with the one from its administrator, then accept the new key",
        ("ssh-keygen -R {host}   # only after that: removes the old key", "ssh {host} true   # accept the new key"),
    ),
    "denied": (
        "it does not accept this user without a password",
        "install your public key there, load it into your ssh agent, or give the user as user@{host}",
        ("ssh-add -l", "ssh-copy-id {host}", "ssh -v {host} true"),
    ),
    "closed": (
        "ssh ended before it started ncclcheck",
        "run the command by hand; with many hosts behind one jump host, MaxStartups of its sshd may "
        "be too small",
        ("ssh -v {host} true",),
    ),
    "no-ssh": ("this machine has no ssh client", "install one (openssh-client), or name it with --ssh", ()),
    "not-started": (
        "this machine could not start another ssh process: it reached a resource limit",
        "raise the limits here, or check the hosts in several runs",
        ("ulimit -Hn; ulimit -Hu", "free -h"),
    ),
    "no-python": (
        "the host does not have the Python that runs here",
        "install the same environment on the host, or give its Python with --remote-python",
        ("ssh {host} 'command -v python3'",),
    ),
    "no-ncclcheck": (
        "the host's Python does not have ncclcheck",
        "install ncclcheck on the host, or give the Python that has it with --remote-python",
        ("ssh {host} 'python3 -m pip install ncclcheck'",),
    ),
    "other-version": (
        "the host has another version of ncclcheck",
        "install the same version on all hosts and here",
        ("ssh {host} 'python3 -m pip install --upgrade ncclcheck'",),
    ),
    "garbage": (
        "its output is not from ncclcheck",
        "check what its shell prints for a command without a terminal, and remove that from its startup files",
        ("ssh {host} true | head",),
    ),
    "ended": (
        "ncclcheck started on the host and ended at once",
        "start ncclcheck on the host by hand and read its output",
        ("ssh {host} 'python3 -m ncclcheck preflight'",),
    ),
    "silent": (
        "ncclcheck started on the host and did not answer in time",
        "find what delays the host: a login script that waits, a hanging home directory, high load; "
        "or use a longer --join-timeout",
        ("time ssh {host} true",),
    ),
    "lost": (
        "the connection was lost during the run, or ncclcheck was killed on the host",
        "make sure that the host is up, and read its kernel log",
        ("ssh {host} 'uptime; dmesg | tail'",),
    ),
}  # fmt: skip


@check("NC115", "host-unreachable", "ncclcheck ran on every host of --hosts")
def host_unreachable(snapshot: Snapshot) -> Iterator[Answer]:
    """Every host of --hosts could be reached by ssh and ran ncclcheck to the end.

    ## Why it matters
    A host that was not checked may not be fit for the job. A host that its operator cannot reach is often one that a
    job cannot reach either: it is down, newly installed (another host key), or without the environment of the others.

    ## How to fix
    The finding quotes ssh. Try `ssh HOST true` from the same shell: it must work without a prompt. Unknown or changed
    host keys are rejected: replace a changed key only when you know why it changed. The same ncclcheck must be
    installed on the hosts; `--remote-python` names the Python that has it.

    Such a host may be fine, so this is a warning, and the run ends with exit code 3 (inconclusive).

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
