"""The last line of a Python traceback, and its kind: the rank's own error, another rank's, or a launcher's.

Source: CPython's traceback format; torch (DistBackendError, DistNetworkError, DistStoreError), torch elastic.
"""

from __future__ import annotations

import re

from ncclcheck.model.events import ExceptionKind

_LINE = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w{0,63}\.){0,10}[A-Za-z_]\w{0,63})(?:: (?P<message>.*)|:?)$", re.DOTALL
)
_CLASS = re.compile(
    r"(?:Error|Exception|Interrupt|SystemExit|Failure|StopIteration|Timeout|Warning|Fault|Abort)$|"
    r"^(?:\w{1,40}\.){0,4}(?:socket|struct|zlib|binascii|pickle|select|ssl|cuda|shutil|nvml|re|json)\.\w{0,40}(?:error|timeout)$"
)
_SOMEWHERE = re.compile(
    r"(?<![\w.'\"(])(?:[A-Za-z_]\w{0,63}\.){0,10}[A-Z]\w{0,63}(?:Error|Exception)(?:: |$)"
)
PATTERNS = (_CLASS.pattern, _SOMEWHERE.pattern)
# In a traceback, whose lines are all read, any other name is a class too.
_LAUNCHER = re.compile(
    r"ChildFailedError|SignalException|CalledProcessError|ProcessExitedException|ProcessRaisedException"
    r"|UnexpectedStatusException|ExecuteUserScriptError"  # SageMaker's, of the job as a whole
)
_AFTER = re.compile(
    r"NCCL error(?: in)?:|Connection closed by (?:remote )?peer|Connection reset by peer|Read error \[|Broken pipe"
    r"|[Tt]imed out waiting|^Operation timed out!?$|Socket closed"
    r"|wait timeout after|waiting for clients|collective operation timeout|ncclRemoteError"
    r"|connectFullMesh failed|trying to connect to \(|NCCL communicator was aborted|Socket Timeout|"
    r"Stop_waiting response|^DEADLINE_EXCEEDED: (?:Deadline Exceeded|Barrier)"
    r"|store based barrier|Rendezvous(?:Timeout|Connection|Closed)|SIGTERM|Detected mismatch between collectives"
    r"|failed to listen on any|failed to bind|EADDRINUSE|(?:server|client) socket|Connection timed out|"
    r"Application timeout"
    r"|Original timeout was|Unable to find address for|Connection refused|No route to host|store->get|monitoredBarrier"
    r"|DataLoader worker \(pid(?:\(s\))?[\d, ]{1,200}\) exited unexpectedly|Failed to connect to GCS"
    r"|Horovod has been shut down"
    r"|^cancelled$|^Shard(?:CannotStart|Failed|Disconnected)$|^Webserver(?:CannotStart|Failed)$"  # vLLM, TGI
    # a communication library says in its own words that it failed, or a meeting did not come about
    r"|\bN?CCL_ERROR|\boneCCL: |\bHccl\w{3,20}, error|\bMPI_ERR_\w|\bto complete rendezvous"
    r"|[Ff]ailed to connect to (?:bootstrap|(?:the )?(?:peers?|rank|master|store|head|coordinator))\b"
    # one process reports that another did not start, without the reason
    r"|\b(?:[Ee]ngine(?: core)?|\w{0,20}[Ww]orker\w{0,10}|[Ss]erver|[Aa]ctor|[Ee]xecutor|[Dd]aemon|node)\b.{0,60}"
    r"\b(?:failed to (?:start|initiali[sz]e|launch)|initiali[sz]ation failed|timed out during startup)\b(?!: \S)"
    r"|\b(?:rank|worker|peers?|actor|collective|barrier)\b.{0,60}\btimed out\b"
    # a serving engine that waited for its workers, which hang in a collective
    r"|[Ii]teration timed out|[Bb]ackground (?:task|loop) (?:failed|has errored)|Task finished unexpectedly"
)
_OF_ANOTHER = re.compile(
    r"\b(?:ranks?|workers?|peers?|actors?|engine|collective|barrier|master|nodes?|rendezvous|RPC)\b",
    re.IGNORECASE,
)
_AFTER_CLASS = re.compile(
    r"(?:Dist(?:Backend|Network|Store)?Error|Rendezvous\w*Error|BrokenPipeError|Connection\w*Error|EOFError|(?:Cancelled|AsyncEngineDead|GetTimeout)Error|"
    r"(?:RayActor|ActorDied|ActorUnavailable|WorkerCrashed|EngineDead|HorovodInternal|XlaRuntime)Error|"
    r"Network(?:Connection)?Error|ConnectError|\w*(?:Daemon|Rpc|Rendezvous)\w*Error|_MultiThreadedRendezvous|ServiceUnavailable|"
    r"KeyboardInterrupt|SystemExit)$"
)


def split(line: str, *, in_traceback: bool) -> tuple[str, str] | None:
    """Class and message of an exception's line, or None. Outside a traceback only a name that says so is one."""
    if not line or line[0].isspace():
        return None
    match = _LINE.match(line)
    if match is None:
        return None
    name, message = match["name"], match["message"] or ""
    if name.startswith("nccl"):
        return None  # NCCL's own name of its error, which torch prints below the exception
    if not in_traceback and name.endswith("Warning"):
        return (
            None  # a logger's line, or warnings.warn's: it is raised in a traceback only (`python -W error`)
        )
    if _CLASS.search(name) or (in_traceback and (message or "." in name)):
        return name, message
    return None


def is_mentioned(text: str) -> bool:
    """Return True if an exception stands behind something that is no prefix that ncclcheck knows."""
    return _SOMEWHERE.search(text) is not None


def kind_of(class_name: str, message: str) -> ExceptionKind:
    """Whether the exception is the worker's own, follows from what another did, or is a launcher's."""
    if _LAUNCHER.search(class_name) or (class_name == "Error" and " exited with " in message):
        return "launcher"
    if _AFTER_CLASS.search(class_name) or _AFTER.search(message) or _waited(class_name, message):
        return "after-effect"
    return "ordinary"


def _waited(class_name: str, message: str) -> bool:
    """Return True for a timeout that says nothing, or that a process of the job was waited for."""
    return class_name.endswith(("Timeout", "TimeoutError", "TimeoutException", "socket.timeout")) and (
        message.strip() in ("", "timed out") or _OF_ANOTHER.search(message) is not None
    )
