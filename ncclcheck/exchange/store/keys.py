"""Every key of the store of a run, and who writes it.

A key that ends in a ticket is written by one process each; a ticket is the number of a process in order of arrival.
"""

from __future__ import annotations

# Joining
SERVING = "serving"  # node 0: the nonce of this run, as soon as the store is up
RANKS_MARK = "ranks-mark"  # node 0, in the store of the ranks only: whoever else writes there spoils it
KEY = "key"  # node 0, in a shared folder only: the run's key
BUILD = "build"  # node 0, before that: which ncclcheck it runs
FIRST_HOST = "first-host"  # node 0, before that: its host name, for those that lose it
SMALL_PACKETS = "small-packets"  # node 0, before that: no connection to the store has a large packet
COMMON = "common"  # node 0, likewise: its own facts, which those of the other nodes refer to
TICKETS = "tickets"  # a counter: each process draws its ticket
RANKS = "ranks"  # a counter: each node draws its rank, where the launcher gives none
RELAYED = "relayed"  # a counter: knocks of nodes that cannot join, which other nodes heard
FIRST_NODE = "first-node"  # node 0, where the run meets elsewhere: does it serve the master address?
MEETS_ELSEWHERE = (
    "meets-elsewhere"  # node 0, in the store at the master address: it does not wait for nodes there
)


def local_ranks(host: str, machine: str) -> str:
    """Return the counter of a node, where each process draws its local rank because no launcher gives one."""
    return f"local-ranks/{host}/{machine}"


# The end of a run, by node 0
REPORT = "report"
SAVED = "saved"  # the snapshot
VERDICT_PORT = "verdict-port"  # node 0: where it confirms its verdict, at the master address
JUDGED = ("facts/", "answer/")  # begins the key of every document on which a verdict rests
# Prefixes of keys that are never waited for: they are polled, or set before any process is told to read them
POLLED = ("hello/", "facts/", "announced/", "order/", "answer/", "refused/", "still/", "bye/")
NEVER_SET = "gone"  # read only to see whether the store still answers


def hello(ticket: int) -> str:
    """Return where a process says who it is."""
    return f"hello/{ticket}"


def relayed(number: int) -> str:
    """Return where a node passes on a knock that it heard."""
    return f"relayed/{number}"


def facts(ticket: int) -> str:
    """Return where a process leaves the facts of its node, or of its rank."""
    return f"facts/{ticket}"


def announced(ticket: int) -> str:
    """Return where a node announces its listeners and names, before anybody is told to call it."""
    return f"announced/{ticket}"


def step(number: int) -> str:
    """Return where node 0 leaves its order number `number`, from 0."""
    return f"step/{number}"


def order(number: int, ticket: int) -> str:
    """Return where node 0 leaves that order as it is for one process, where it differs between them."""
    return f"order/{number}/{ticket}"


def answer(number: int, ticket: int) -> str:
    """Return where a node answers that order."""
    return f"answer/{number}/{ticket}"


def refused_orders(ticket: int) -> str:
    """Return where a node tells which orders it refused."""
    return f"refused/{ticket}"


def stood_still(ticket: int) -> str:
    """Return where a process tells that it did not run for a while."""
    return f"still/{ticket}"


def bye(ticket: int) -> str:
    """Return where a process says that it needs the store no more."""
    return f"bye/{ticket}"


def meeting_view(node_rank: int) -> str:
    """Return where a node that does not find node 0 in the shared folder leaves what it saw there."""
    return f"meeting/{node_rank}"


def share_wrote(nonce: str) -> str:
    """Return the counter of the nodes that wrote their files into the shared folders under test."""
    return f"share/{nonce}/wrote"


def share_looked(nonce: str) -> str:
    """Return the counter of the nodes that looked for the files of all nodes there."""
    return f"share/{nonce}/looked"


# A benchmark, by the name of its set of workers


def bench_state(name: str, ticket: int) -> str:
    """Return where a node keeps the state of its workers."""
    return f"{name}/state/{ticket}"


def bench_point(name: str, number: int) -> str:
    """Return where the node of rank 0 leaves the point number `number` of the plan."""
    return f"{name}/point/{number}"


def bench_isolation(name: str) -> str:
    """Return where the node of rank 0 leaves how fast single ranks and links are."""
    return f"{name}/isolation"


def bench_mesh(name: str) -> str:
    """Return where the node of rank 0 leaves what was measured in the parallel groups."""
    return f"{name}/mesh"


def bench_stop(name: str) -> str:
    """Return where node 0 tells the nodes to end the workers."""
    return f"{name}/stop"


def bench_log(name: str, ticket: int) -> str:
    """Return where a node leaves what it read in the NCCL logs of its workers."""
    return f"{name}/log/{ticket}"


def bench_done(name: str, ticket: int) -> str:
    """Return where a node says that its workers have ended."""
    return f"{name}/done/{ticket}"


def bench_turn(name: str, number: int) -> str:
    """Return where the ranks find their turn `number`, from 0."""
    return f"{name}/turn/{number}"


def bench_round(name: str, number: int) -> str:
    """Return where rank 0 leaves the result of that turn."""
    return f"{name}/round/{number}"


def bench_group(prefix: str, nonce: str) -> str:
    """Return the prefix of torch's own keys, under which the ranks form their process group."""
    return f"{prefix}group/{nonce}"


def pair_group(prefix: str, nonce: str, number: int, first: int) -> str:
    """Return the prefix of torch's own keys, under which the ranks of the pair (or ring) of `first` meet in a round."""
    return f"{prefix}pairs/{nonce}/{number}/{first}"


def pair_round(prefix: str, nonce: str, number: int) -> str:
    """Return the prefix of torch's own keys, under which the ranks of all pairs of a round wait for each other."""
    return f"{prefix}pairs/{nonce}/{number}/all"


def barrier_ranks(prefix: str, stage: str) -> str:
    """Return where the ranks of a round are counted that are at a stage of it."""
    return f"{prefix}/{stage}/ranks"


def barrier_opens(prefix: str, stage: str) -> str:
    """Return what the last of them sets."""
    return f"{prefix}/{stage}/begin"


def pairs_start(ticket: int, number: int) -> str:
    """Return where a node that imports torch gives its sign of that number, from 0."""
    return f"pairs/start/{ticket}/{number}"


def pairs_moved(number: int, ticket: int, sign: int) -> str:
    """Return where a node gives its sign of that number, from 0, that its pair of a round goes on."""
    return f"pairs/{number}/moved/{ticket}/{sign}"


def pairs_over(number: int) -> str:
    """Return where node 0 tells the nodes that a round of pairs is over."""
    return f"pairs/over/{number}"


def pairs_round(number: int) -> str:
    """Return where node 0 leaves the round number `number`, from 0."""
    return f"pairs/round/{number}"


def pairs_answer(number: int, ticket: int) -> str:
    """Return where a node says what became of its pair in that round."""
    return f"pairs/answer/{number}/{ticket}"


# The watchers of a running job

WATCH_SLOTS = "watch/slots"  # a counter: each watcher draws its slot
WATCH_URGENT = "watch/urgent"  # a counter: a watcher has something that node 0 should read at once
WATCH_ORDER = "watch/order"  # node 0's watcher: what all have to do, and what it decided


def watch_beat(slot: int) -> str:
    """Return where a watcher leaves its last beat."""
    return f"watch/beat/{slot}"


def watch_study(slot: int) -> str:
    """Return where a watcher leaves its last study of its ranks."""
    return f"watch/study/{slot}"
