"""Lines that look like errors and are normal, each with the reason; shown with -v.

Sources: NCCL plugin/net.cc and transport/nvls.cc, torch c10d/{socket,TCPStore,ProcessGroupNCCL}.cpp, torchrun's run.py.
"""

from __future__ import annotations

import re

_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"/Plugin ?:.{0,40}(?:No plugin found|Could not find|dlerror=)|Plugin load .{0,60}returned 2|"
        r"nccl\w*Plugin_v\d+ symbol",
        "NCCL looks for optional plug-ins, and uses its own code without them",
    ),
    (
        r"NVLS multicast support is not available",
        "these GPUs have no NVLink SHARP; other algorithms are used",
    ),
    (r"NET/IB ?: No device found", "there is no RDMA device to use; NCCL uses sockets"),
    (
        r"Failed to open libibverbs",
        "without the verbs library NCCL uses sockets, which is right where there is no RDMA",
    ),
    (
        r"process group has NOT been destroyed|destroy_process_group\(\) was not called before program exit",
        "the program ended without destroy_process_group; the work was done",
    ),
    (
        r"client socket has failed to connect to .{1,300}errno: 1(?:11|10)\b",
        "rank 0 was not up yet; the others try again until it is",
    ),
    (r"client socket cannot be initialized to connect to .{1,300}errno: 97\b", "no IPv6 here; IPv4 is used"),
    (r"server socket cannot be initialized on \[::\]", "this machine has no IPv6; IPv4 is used"),
    (
        r"addresses of \(.{1,300}cannot be retrieved",
        "one address family of the name was not found; the other is tried",
    ),
    (
        r"hostname of the client socket cannot be retrieved",
        "the reverse look-up of an address failed, which only matters for messages",
    ),
    (
        r"devices used by this process are currently unknown",
        "barrier() guesses the GPU; with one GPU per rank it guesses right",
    ),
    (r"Exception ignored in", "Python cleans up at the end of the process"),
    (
        r"uv_loop_close failed|Remote peer closed the connection|recvValue failed|Connection closed by localRank",
        "a peer ended first, as at every exit",
    ),
    (r"OMP_NUM_THREADS environment variable for each process", "torchrun sets a default of one thread"),
    (
        r"memory allocator not found, using regular one|buckets? (?:have been )?rebuilt",
        "torch says what it does",
    ),
    (
        r"Continuing in spite of a RAS|RAS .{0,60}(?:keep-alive|timeout)",
        "NCCL's own monitoring, which no collective depends on",
    ),
    (
        r"^wandb: (?:Find (?:user )?logs|Synced|(?:[^\w\s]{1,4} )?View |Run (?:summary|history|finished))",
        "the tracker says where it keeps the run",
    ),
    (
        r"^COMET INFO: (?:Please wait for|Waiting for|Uploading|The Python SDK has)",
        "the tracker uploads what the program told it",
    ),
    (
        r"The caller indicates that this is not a failure",
        "TensorFlow's allocator tries again with less",
    ),
    (r"^(?:real|user|sys)\s{1,8}\d{1,6}m[\d.,]{2,8}s$", "the shell's time of the command"),
    (
        r"Unable to register cu\w+ factory|Could not find TensorRT|cannot be preloaded",
        "another library's message, of no effect here",
    ),
)
HARMLESS_PATTERNS = tuple(words for words, _ in _TABLE)
HARMLESS = tuple((re.compile(words), why) for words, why in _TABLE)


def why_harmless(text: str) -> str:
    """Why the line is normal; empty where nothing says so."""
    return next((why for pattern, why in HARMLESS if pattern.search(text)), "")
