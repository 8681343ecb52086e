"""Machines as clusters have them: hardened, stripped and misconfigured. What is done before a command starts there."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class World(Struct, frozen=True):
    """A machine that lacks something.

    `script` is run by a shell as root in a mount namespace of its own, and has to become the command ("$@"). `exits`
    are the exit codes that are right; `slugs` are findings that must be there, `wrong` such that would mislead.
    """

    name: str
    script: str
    exits: tuple[int, ...] = (0,)
    slugs: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()
    pids: bool = False  # in a PID namespace of its own
    both: bool = True  # node 0 as well
    writes: bool = True  # the report's file can be written

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in this world."""
        own_pids = ["--pid", "--fork", "--kill-child"] if self.pids else []
        return ["unshare", "--mount", *own_pids, "sh", "-c", self.script, "sh", *argv]


_RUN = 'exec "$@"'
_HANGS = frozenset({"resolver-hangs"})
_NOT_THE_NETWORK = frozenset({"master-filtered", "master-foreign"})
_NO_TORCH = (1,), frozenset({"torch-unusable"})  # `python -c "import torch"` ends with an error there
_DEVICES = (
    "mkdir /tmp/.dev 2>/dev/null; mount -t tmpfs dev /tmp/.dev; "
    "for d in {kept}; do touch /tmp/.dev/$d && mount --bind /dev/$d /tmp/.dev/$d; done; mount --move /tmp/.dev /dev; "
)
_PROC = "mount -t proc -o subset=pid proc /proc; "
# The interpreter may lie in the home folder of root, which nobody else may enter.
_NOBODY = (
    "mkdir -p /tmp/.root; mount --bind /root /tmp/.root; mount -t tmpfs -o mode=755 r /root; "
    "for f in /tmp/.root/.[a-z]*; do n=/root/${f##*/}; [ -d $f ] && mkdir $n && mount --bind $f $n; done; "
    "exec setpriv --reuid 12345 --regid 12345 --clear-groups "
)

WORLDS = (
    World("proc-subset-pid", _PROC + _RUN, pids=True),
    World("proc-subset-pid-of-the-other-node", _PROC + _RUN, pids=True, both=False),
    World("proc-subset-pid-without-sys", _PROC + "mount -t tmpfs sys /sys; " + _RUN, pids=True),
    # of this mount alone (bind): the whole file system would be read-only for the machine
    World("proc-read-only", "mount -o remount,bind,ro /proc; " + _RUN),
    World("proc-empty", "mount -t tmpfs proc /proc; " + _RUN),
    World("proc-hidepid", "mount -t proc -o hidepid=2 proc /proc; " + _NOBODY + '"$@"', pids=True),
    World("proc-sys-hidden", "mount -t tmpfs none /proc/sys; " + _RUN),
    World("proc-net-hidden", "mount -t tmpfs none /proc/self/net; mount -t tmpfs none /proc/$$/net; " + _RUN),
    World("sys-empty", "mount -t tmpfs sys /sys; " + _RUN),
    World("sys-unreadable", "mount -t tmpfs -o mode=700 sys /sys; " + _NOBODY + '"$@"'),
    World("sys-read-only", "mount -o remount,ro /sys; " + _RUN),
    World("dev-without-shm", _DEVICES.format(kept="null zero random urandom") + _RUN),
    World("dev-null-only", _DEVICES.format(kept="null") + _RUN, *_NO_TORCH),
    World("dev-read-only", "mount -o remount,bind,ro /dev; " + _RUN),
    World("dev-empty", _DEVICES.format(kept="") + _RUN, *_NO_TORCH),
    # Gloo, the backend of nodes without GPUs, then binds loopback.
    World("hosts-gone", "mount --bind /dev/null /etc/hosts; " + _RUN, (1,), frozenset({"hostname-loopback"})),
    World(
        "hosts-fifo",
        "mkfifo $TMPDIR/f; mount --bind $TMPDIR/f /etc/hosts; " + _RUN,
        (1,),
        _HANGS,
        _NOT_THE_NETWORK,
    ),
    World(
        "resolv-fifo",
        "mkfifo $TMPDIR/f; mount --bind $TMPDIR/f /etc/resolv.conf; " + _RUN,
        (1,),
        _HANGS,
        _NOT_THE_NETWORK,
    ),
    World("etc-empty", "mount -t tmpfs etc /etc; " + _RUN, (1,), frozenset({"hostname-loopback"})),
    World(
        "hosts-read-only", "mount --bind /etc/hosts /etc/hosts; mount -o remount,bind,ro /etc/hosts; " + _RUN
    ),
    World(
        "home-read-only",
        "mkdir $TMPDIR/h; mount -t tmpfs -o ro t $TMPDIR/h; HOME=$TMPDIR/h; export HOME; " + _RUN,
    ),
    World("home-unreadable", "mkdir -m 700 $TMPDIR/h; HOME=$TMPDIR/h; export HOME; " + _NOBODY + '"$@"'),
    World("home-unset", "unset HOME; " + _RUN),
    World("home-gone", "HOME=/nonexistent; export HOME; " + _RUN),
    World("home-a-file", "HOME=/dev/null; export HOME; " + _RUN),
    World(
        "tmp-gone", "TMPDIR=/nonexistent; export TMPDIR; mount -t tmpfs -o ro t /var/tmp; cd /proc; " + _RUN
    ),
    World(
        "tmp-full",
        "mount -t tmpfs -o size=4k t $TMPDIR; dd if=/dev/zero of=$TMPDIR/x bs=4k count=4 2>/dev/null; "
        + _RUN,
    ),
    World(
        "tmp-read-only", "mount -t tmpfs -o ro t /var/tmp; TMPDIR=/var/tmp; export TMPDIR; cd /sys; " + _RUN
    ),
    World("tmp-unreadable", "mkdir -m 700 $TMPDIR/t; TMPDIR=$TMPDIR/t; export TMPDIR; " + _NOBODY + '"$@"'),
    World("folder-removed", "mkdir $TMPDIR/d; cd $TMPDIR/d; rmdir $TMPDIR/d; " + _RUN, *_NO_TORCH),
    World("folder-unreadable", "mkdir -m 700 $TMPDIR/d; cd $TMPDIR/d; " + _NOBODY + '"$@"'),
    World("nobody-without-a-name", "unset HOME USER; " + _NOBODY + '"$@"'),
    World("no-capabilities", "exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs " + '"$@"'),
    World("environment-empty", 'exec env -i PYTHONPATH="$PYTHONPATH" "$@"'),
    World("path-empty", "PATH=; export PATH; " + _RUN),
    World("open-files-64", "ulimit -n 64; " + _RUN, (1,), frozenset({"nofile-low"})),
    World("files-of-no-size", "ulimit -f 0; " + _RUN, (2,), writes=False),
    World("few-processes", "ulimit -u 40; " + _NOBODY + '"$@"'),
    World("warnings-are-errors", "PYTHONWARNINGS=error; export PYTHONWARNINGS; " + _RUN),
    World("no-docstrings", "PYTHONOPTIMIZE=2; export PYTHONOPTIMIZE; " + _RUN),
    World("locale-unknown", "LC_ALL=xx_YY.KOI8-R; export LC_ALL; " + _RUN),
    World("streams-closed", 'exec "$@" 0<&- 1>&- 2>&-'),
    World("core-limit-and-stack", "ulimit -c 0; ulimit -s 256; " + _RUN),
    World(
        "loopback-down", "ip link set lo down; " + _RUN, (1,), frozenset({"loopback-down"}), _NOT_THE_NETWORK
    ),
)
