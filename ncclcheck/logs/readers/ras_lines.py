"""The lines of NCCL's RAS text, for an answer of its server and for one that is pasted into a log.

Source: NCCL src/ras/client_support.cc, v2.24.3 (one count for all collectives) to v2.30.7 (a count of each).
"""

from __future__ import annotations

import re

HEADING = re.compile(
    r"^#\d{1,9}-\d{1,9} \((?P<hash>[0-9a-fA-F]{1,16})\) "
    r"(?P<kind>MISMATCH|INCOMPLETE|ERROR|TIMEOUT|DEAD|FINALIZE|ABORT)"
)
COUNTS = re.compile(r"Communicator ranks have different (?P<operation>\w{1,40}) operation counts")
GROUP = re.compile(
    r"(?P<number>\d{1,9}) ranks have (?:launched up to operation (?P<count>\d{1,19})|not launched any operations)"
)
# The first of a group stands with its rank, those below it on lines of their own.
RANK = re.compile(
    r"(?:Rank (?P<rank>\d{1,9}) ?)?(?:has (?:launched up to operation (?P<count>\d{1,19})|"
    r"(?P<none>not launched any operations)|status (?P<status>\w{1,20})) )?-- GPU .{1,40}managed by process "
    r"(?P<pid>\d{1,10}) on node (?P<host>[\w.:-]{1,253})"
)
MISSING = re.compile(r"The missing ranks?: (?P<ranks>[\d, ]{1,1000})")
LOST = re.compile(r"Process (?P<pid>\d{1,10}) on node (?P<host>[\w.:-]{1,253}) managing GPU")
