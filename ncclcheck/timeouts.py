"""Every duration of ncclcheck, in seconds: what it bounds, and why it is as long as it is.

A wait inside another is shorter than that. The help texts take their defaults from here.
"""

from __future__ import annotations

import math

# --- The whole run: what --timeout, --join-timeout and --budget are where they are not given ---

PREFLIGHT_TIMEOUT_S = 60.0  # --timeout of preflight
# --timeout of bench and run, beside --budget: preflight, importing torch, connecting, warm-up
BENCH_TIMEOUT_S = 120.0
NODE_TIMEOUT_S = 50.0  # --timeout of node: Slurm kills its health check after 60 s
SLURM_HEALTH_S = 15.0  # kept back of it with --slurm-health: reading and changing the node's state in Slurm
SCONTROL_S = 5.0  # one call of scontrol: slurmctld answers in milliseconds, or is busy or away
# Slurm starts its health check on all nodes at once: when it drained a node, each looks again who else did
SLURM_SETTLE_S = 2.0
HEALTH_HISTORY_S = 86400.0  # a result of a health check that is older says nothing about the node of today
JOIN_TIMEOUT_S = 30.0  # --join-timeout: for all nodes to join
BENCH_BUDGET_S = 20.0  # --budget: for all measuring of a benchmark
TRY_BUDGET_S = 1800.0  # --budget with --try: all sets of processes; it ends as soon as it is decided
LONGEST_OPTION_S = 7 * 24 * 3600.0  # a week, for any option in seconds: a larger number is a typing error
SOAK_S = 3600.0  # --duration of soak
SOAK_LEAST_S = 10.0  # the same, at least
SOAK_LONGEST_S = LONGEST_OPTION_S - 3600.0  # the same, at most: the run takes longer than that
SOAK_BLOCK_S = 10.0  # --every of soak: of one block
SOAK_LEAST_BLOCK_S = 0.5  # the same, at least: a block has to hold a few iterations
SOAK_LONGEST_BLOCK_S = 600.0  # the same, at most
SOAK_PART_S = 0.05  # one part of a transfer between two nodes of a soak; a transfer has a dozen
SOAK_TOLD_S = 60.0  # of a drop: the report says which size it needs to show in the noise
SOAK_PAIRS_S = 1.5  # a turn of pairs, both ways, as the shortest soak counts it
SOAK_WRITE_S = 10.0  # a block of a soak onto the disk of node 0, which meanwhile watches nothing
SOAK_COUNTERS_S = 2.0  # reading the counters of a node between two blocks: a card may hold it up
HOUR_S = 3600.0  # trends are told per hour
SOAK_TREND_S = HOUR_S  # a series that is shorter has no trend
# Between two plain lines about the same point of a benchmark, where no terminal shows progress
LIVE_LINE_S = 10.0
# Kept back from --timeout to judge, write and tell the other nodes; of a short run a fifth at most
CONCLUDE_S = 3.0
# A reader of standard output may take nothing (a stopped pager): so long until the other nodes get the verdict anyway
SHOWN_S = 2.0
SHOWN_LONGEST_S = 600.0  # the same: until this node ends without having shown all of its report
ERROR_LINE_S = 0.5  # a line on standard error that nobody takes for so long is dropped
# The home folder: on a mount that hangs, a module that reads its settings there would hang as well
HOME_S = 2.0
USER_FILE_S = 10.0  # a file that the command line names: its mount may hang
UNTIL_THE_END_S = math.inf  # a step that ends with --timeout, or whose order says how long it takes

# --- Polling: how long a loop sleeps before it looks again ---

STORE_FIRST_POLL_S = 0.005  # the first sleep while a key of the store is awaited; each is half as long again
STILL_ARRIVING_S = 2.0  # answers are waited for beyond their deadline while the last one came as late as that
THOROUGH_LOOK_S = 0.5  # of many keys awaited together no group was complete for so long: each is asked for
STORE_LAST_POLL_S = 0.1  # the longest of these sleeps
CHILD_POLL_S = 0.05  # a child's output and exit
NVML_POLL_S = 0.05  # the children that ask NVML
MARKS_POLL_S = 0.05  # files of other nodes in a shared folder under test
FLEET_POLL_S = 0.1  # the ssh connections of a head node
PROCESS_POLL_S = 0.01  # whether processes that were told to end have ended
CUDA_EVENT_POLL_S = 0.00005  # a CUDA event: short against any collective, and the core is not spun
CUDA_HOLD_S = 0.01  # the GPU waits so long while calls are enqueued: 32 take 1 to 3 ms
CUDA_HOLD_LONGEST_S = 0.2  # the same where enqueueing takes long
# A rank waits for its GPU for so long: from then on it asks whether the GPU runs anything
GPU_PULSE_AFTER_S = 2.0
GPU_PULSE_EVERY_S = 1.0  # between two such questions
# A GPU that has not run a tiny kernel by then does nothing at all; beside NCCL's kernels it takes microseconds
GPU_SILENT_S = 3.0
PIPE_FULL_POLL_S = 0.005  # a non-blocking pipe that takes no more

# --- The store ---

STORE_CALL_S = 8.0  # one call: TCP has sent a lost packet again several times by then
STORE_WAIT_S = 4.0  # of a call that waits for a key until the server tells that it is set
STORE_LOOK_S = 4.0  # between two looks whether what this process wrote is still there
STORE_CLOSE_S = 1.0  # for a call that still runs, when the store is closed
# A store with a key: a caller has to prove itself by then; torch's store of another run would be silent for as long
KEYED_HANDSHAKE_S = 5.0
KEYED_BANNER_S = 3.0  # node 0 speaks first: two SYNs, and a line
KEYED_ASKED_S = 1.0  # torch's store has not answered by then: perhaps it is one that asks for a key
# Before the store of the ranks lets a new member's address in: the next ones may have come by then
KEYED_ADMITS_S = 0.1
KEYED_FULL_S = 0.05  # no file descriptor is left for a caller: until some have gone
MEMORY_POLL_S = 0.05  # the memory of node 0, which a stranger can fill by a gigabyte in a second
KEYED_CLOSE_S = 1.0  # cutting off the callers when the store is closed
MUNGE_S = 5.0  # munged answers in milliseconds; it is asked once per node
MUNGE_FRESH_S = 120.0  # a credential is made anew from this age on: munge's own limit is 300 s
# Importing torch, which takes a minute from a slow filesystem, before the time for a store begins
TORCH_IMPORT_S = 60.0
FOLDER_HEARTBEAT_S = 0.4  # between two signs of life of node 0 in a shared folder
FOLDER_SILENT_S = 15.0  # node 0 counts as gone after so long without one
FOLDER_FRESH_S = 0.05  # what was read of the folder counts as current for so long
FOLDER_STALE_S = 3600.0  # files of an earlier run are removed from this age on, by the folder's own clock
FOLDER_RECENT_S = 300.0  # a mark of node 0 that is older than the own one by so much is of an earlier run
FOLDER_REMOVE_S = 3.0  # removing the files of this process at its end, before the child process is killed

# --- Joining: finding node 0 ---

# The master's name: those of pods and cloud hosts may appear some seconds after the node
MASTER_RESOLVE_S = 4.0
# SYNs leave at 0, 1, 3 and 7 s (tcp(7), tcp_syn_retries): four lost in a row are no accident
MASTER_SYN_S = 8.0
# Two SYNs without an answer: then it is asked by datagram whether node 0 serves
MASTER_FIRST_SYNS_S = 1.2
MASTER_MORE_SYNS_S = 2.4  # two more, at 0 and 1 s: where it does serve, four lost ones are no accident
MASTER_UNREACHABLE_S = 3.0  # "no route": ARP gives up after 3 s
# The name leads to this very machine. If node 0 is there, it replies by datagram long before it serves
MASTER_LOCAL_S = 4.0
KNOCK_S = 0.3  # for the replies to a datagram, from machines in the same network
KNOCK_EVERY_S = 1.0  # between two of them
# Node 0 is not where the name leads for so long: from then on it is looked for on every link, ever more rarely
BROADCAST_AFTER_S = 1.5
BROADCAST_NAMES_S = 0.5  # the launcher's names of the other nodes, to send datagrams to them too
# Knocks that other nodes heard: none is there before a node gives up, which takes seconds
RELAYED_AFTER_S = 2.0
RELAYED_POLL_S = 0.3  # between two looks for them
MASTER_CONFIRMED_S = 2.0  # node 0 says its store is up, yet TCP is refused: no reason to wait on
MASTER_RETRY_S = 0.2  # between two attempts to resolve or to connect
MASTER_SELF_S = 6.0  # node 0 connects to its own store by an address that is not its own (a virtual one, NAT)
# Node 0 connects to its own port: two SYNs, since only a rule loses packets on the loopback interface
OWN_PORT_S = 2.5
KNOCK_CLOSE_S = 1.0  # the thread that reads the knocks of nodes
# Node 0 confirms its verdict, over a connection of its own: two SYNs, and a line each way
VERDICT_ASK_S = 5.0
VERDICT_CLOSE_S = 1.0  # the thread that answers who asks for the verdict
# The name of a c10d rendezvous: a name server may be slow, and torch would wait as well
RENDEZVOUS_RESOLVE_S = 5.0
SILENCE_TOLD_S = 10.0  # a node is not heard of for so long: the user is told why that may be
WRONG_NODES_QUIET_S = 2.0  # as many came as were expected, but with ranks that clash: so long for another
RANKS_QUIET_S = 10.0  # every node is there, further ranks of them are not: they may still be importing torch
SERVE_STORE_S = 30.0  # opening the TCPStore at the master port, on a busy node
JOIN_LAUNCHER_STORE_S = 10.0  # connecting to the store that torchrun serves already
# The job cannot start as it is: the other nodes may still come for so long, to be diagnosed too
DOOMED_JOIN_S = 10.0
STAND_DOWN_S = 6.0  # node 0 cannot serve: it tells the nodes that ask for so long, so that they do not wait
# The same after a bug: a node that is connected notices after STORE_ANSWERS_S, and asks then
FAILED_STAND_DOWN_S = 15.0
# A node does not use the key that it was given, and tells node 0, which may start later
REFUSED_KEY_TOLD_S = 20.0
STORE_ANSWERS_S = 12.0  # what accepts at the master port has to speak TCPStore's protocol, and be of this run
# The same where a name server is silent: torch's store looks up each node that connects, one after the other
STORE_SLOW_NAMES_S = 25.0
STORE_SILENT_S = 2.0  # it has not done so by then: perhaps node 0 is elsewhere, which it says by datagram
# What accepts there and does not answer: does it say or close anything, does it still listen
UNJOINED_LOOK_S = 1.0
UNJOINED_DATAGRAM_S = 0.5  # does anybody refuse a datagram to that port
KNOWN_STORE_ANSWERS_S = 6.0  # the same where the run meets elsewhere, so that little depends on it
# Reaching a master address that is known to be served: long enough to tell filtered from slow
MASTER_UP_S = 10.0
MASTER_DOWN_S = 5.0  # reaching one that is known not to be
# The first sign of life of a shared folder: a call to a mount that hangs takes STORE_CALL_S
FOLDER_OPENS_S = 9.0
FOLDER_ALONE_S = 3.0  # node 0 is not in the folder: from then on it is looked for by TCP too
FOLDER_APPEARS_S = 6.0  # node 0 is in its folder: files of another node may take so long to appear there
# Node 0 has left the master port: it waits BYE_S for the other nodes, and may have large files to write
LEFT_PORT_S = 15.0

# --- Steps of a run: how long node 0 waits for the answers ---

LOCAL_FACTS_S = 12.0  # reading this node's facts; then each section is Missing
FACTS_ANSWER_S = 15.0  # LOCAL_FACTS_S, and the time for a large document to arrive
ANSWER_S = 2.0  # for an answer to arrive, beyond the time that the work has
ANSWER_OF_EACH_S = 0.002  # more for each node: orders and answers of thousands pass through one process
SHORT_ANSWER_S = 1.0  # the same where the work itself has a fixed end
REACH_S = 12.0  # probing all peers; a filtered one takes PROBE_CONNECT_S
AFTER_MEASURE_S = 5.0  # left for the steps after measuring; else nothing is measured
CONFIRM_S = 15.0  # asking the real library again: on a busy node, starting the process takes most of it
LEAST_CONFIRM_S = 1.0  # with less time nobody is asked
RESOLVE_S = 5.0  # asking for the addresses of a name
SHARE_WRITE_S = 4.0  # a mount that does not take a small file by then counts as dead
SHARE_START_S = 1.0  # more for the slowest node, after which the others look anyway
SHARE_LOOK_S = 3.0  # another node's file may take so long to appear
SHARE_REMOVE_S = 3.0  # removing the own file
SHARE_S = SHARE_WRITE_S + 2 * SHARE_START_S + SHARE_LOOK_S + SHARE_REMOVE_S  # all of it
SHARE_FILE_LIFETIME_S = 60.0  # then a file removes itself whose process no other speaks to any more
BYE_S = 2.0  # for the other nodes to read the report and leave
CONFIRM_LEAST_ASK_S = 0.5  # asking the real library once more, even where the time is over
LONGEST_CALLS_S = 60.0  # an order to call other nodes may not ask for more: calling takes far less

# --- Probing reachability between nodes ---

PROBE_CONNECT_S = 5.0  # three SYNs: at 0, 1 and 3 s
PROBE_HELLO_S = 3.0  # the first line on a connection that was accepted
PROBE_BLOCK_S = 3.0  # each block of the test for large packets: TCP has sent it again several times by then
# The called node waits longer: the caller gives up first, and so has the outcome
PROBE_PATIENT_S = 3 * PROBE_BLOCK_S
PROBE_LOOK_S = 0.25  # between two looks for connections that only one end regards as established
PROBE_LISTEN_S = 5.0  # opening the listeners: only local calls
PROBE_CLOSE_S = 2.0  # closing them, and again the thread that serves them
# NCCL RAS: for the ranks' answers; NCCL's own default, and it takes as long again to give one up
RAS_GATHER_S = 5
RAS_CONNECT_S = 5.0  # NCCL RAS: connecting to a rank of the job
RAS_ANSWER_S = 30.0  # NCCL RAS: the whole answer, which takes at least twice RAS_GATHER_S if ranks are gone
# NCCL RAS: counts that differ are normal while they grow, and a second answer tells
BETWEEN_RAS_ANSWERS_S = 3.0

# --- Measuring between nodes ---

LINKS_TOTAL_S = 10.0  # all of it, with the orders and the answers
LINKS_TRANSFERS_S = 5.0  # all transfers
LINKS_PINGS_S = 1.0  # all round trips
LINKS_PINGS_OF_A_PAIR_S = 0.03  # the round trips of one pair
LINKS_PINGS_AGAIN_S = 0.1  # of a pair that is measured again alone
# Small round trips of a pair that may lose packets: each loss holds a connection up for 0.2 s
LINKS_LOSS_S = 1.5
LINKS_LOSS_MORE_S = 1.0  # after that, for what was sent again and is still on its way
LINKS_WARM_UP_S = 0.05  # of a transfer: slow start, and the burst that a shaped link lets through first
LINKS_WINDOW_S = 0.1  # in which a transfer is timed
LINKS_LEAST_WARM_UP_S = 0.03  # of the warm-up, where many pairs share the time
LINKS_LEAST_WINDOW_S = 0.05  # of that window, likewise
LINKS_START_S = 0.02  # of each transfer: to connect, and to say go
LINKS_PARTNER_S = 1.5  # for the partner of the first round; later rounds start by the clock that began then
# More for each further partner: who waited for one that is gone is on time for the next
LINKS_TOLERANCE_S = 0.3
LINKS_RECEIVER_S = 0.3  # beyond the receiver's time, until a sender that was not told to stop does so itself
LINKS_SENDER_S = 0.5  # beyond the time of all rounds, for the sending thread to end
LINKS_STREAM_CLOSE_S = 1.0  # each thread that receives a stream
CLOCK_CALL_S = 0.5  # one question for a partner's clock: a later answer says little
CLOCK_TELL_S = 5.0  # answering such questions on one connection
ECHO_S = 5.0  # sending back round trips on one connection

# --- Benchmark ---

WORKERS_START_S = 20.0  # starting the worker processes of one node
WORKER_IMPORT_S = 45.0  # a rank is starting: importing torch takes that where many processes share few cores
WORKER_JOIN_S = 30.0  # a rank joins the process group, from when the last rank came
WORKER_FIRST_CALL_S = 20.0  # the first call of a point, which connects; beside the time for its bytes
WORKER_STALL_S = 10.0  # a later call, beside several times the longest one of its point
WORKER_STOPPED_S = 5.0  # a stopped process (SIGSTOP, a debugger) may be continued as soon
WORKER_STOPPED_AT_END_S = 1.0  # the same when the time of the run is over
NODE_LOST_S = 6.0  # a node that says nothing for so long is lost
NODE_FIRST_WORD_S = 20.0  # instead of it, for a node that has not said yet that it starts its workers
# A node that is silent for so long may be lost, too: nobody is judged before that is clear
NODE_QUIET_S = 3.0
KERNEL_ANSWERS_S = 2.5  # the kernel of such a node answers a call: two SYNs, and known before NODE_LOST_S
ERROR_SETTLES_S = 1.5  # how long the cause of a broken connection may take to be seen on its own node
# Torch's own limit for joining the group: longer than WORKER_JOIN_S, whose finding says more
GROUP_JOIN_S = 60.0
GROUP_CALL_S = 1800.0  # torch's own limit for a call: never reached, the worker is ended before
CONNECTIONS_AFTER_S = 2.0  # a rank is inside a call for so long: from then on its connections are looked at
# What was seen of them holds: Gloo calls again, and in between there is no connection
CONNECTIONS_KEPT_S = 3.0
HEARTBEAT_S = 0.004  # between two beats that show whether a rank gets a core
HEARTBEAT_LATE_S = 0.001  # a beat may be late: a timer on an idle machine is late by less
POINT_LEAST_S = 0.25  # of measuring a point: a machine's own work comes every few hundredths of a second
ISOLATED_TRANSFER_S = 0.02  # a typical transfer of one pair alone, at the speed of the collectives
ISOLATED_PAIR_S = 0.2  # all transfers of one pair alone
ISOLATE_TIMEOUT_S = 300.0  # the whole of `isolate`, or of `matrix`: 64 nodes meet in 75 rounds of some 3 s
PAIR_TRANSFER_S = 0.25  # a typical transfer of a pair of `isolate`: long against what a queue holds
PAIR_TOGETHER_S = 0.12  # of a pair of `matrix`, whose parts go on until all pairs have counted
PAIR_SLOW_FIRST_S = 0.02  # of the short first transfer of a pair: one that takes longer tells the rate
PAIR_ROUND_TRIPS_S = 0.06  # of a pair of `matrix`: 200 small messages there and back, or fewer
PAIR_BARRIER_S = 5.0  # of a pair of `matrix` for all other pairs of its round to begin with it
PAIR_BARRIER_POLL_S = 0.02  # between two looks whether they are there
PAIR_JOIN_S = 10.0  # for the two ranks of a pair to meet in the store
PAIRS_READY_S = 120.0  # for a node to import torch before the first round: 16 on two cores take 27
PAIRS_START_BEAT_S = 1.0  # between two signs of a node that imports torch
PAIRS_START_SILENT_S = 15.0  # without a sign a node that imports torch hangs
PAIRS_START_TOLD_S = 10.0  # after which the user hears who is waited for
PAIR_LONGEST_S = 60.0  # a node waits no longer for its pair, should node 0 not end the round
ROUND_LEAST_S = 2.0  # a round is not ended earlier than this after the last pair that finished
PAIR_MOVED_S = 1.0  # between two signs that a pair goes on, and between two looks of node 0 for them
PAIR_STILL_S = 4.0  # without a sign a pair that is late hangs
ROUND_MOVING_S = 40.0  # after which a round is over for pairs that are late, although they go on
ROUND_POLL_S = 0.05  # between two looks of node 0 at the answers to a round, and of a node at its pair
ROUND_FIRST_S = 20.0  # for half of the pairs of the first round to finish
ROUND_ALONE_S = 8.0  # for the only pair of the first round
RING_OF_A_NODE_S = 0.05  # for each node of a ring, on top of what a pair has: all of them meet all others
ROUND_ENDS_S = 3.0  # for the nodes to answer after node 0 ended a round, in which they only kill a process
ROUND_OVER_S = 1.0  # for one node of each pair to answer after node 0 ended a round: then the next begins
ROUND_START_S = 3.0  # that the start of a pair's processes may differ between pairs, at most
# A node that is silent since a round began may only be paused: so long it may come back before it is named. A pause of
# 12 s, as of a virtual machine that moves, is bridged; a node that hangs costs less than 10 s.
NODE_PAUSE_S = 14.0
PAIRS_CALL_S = 2.5  # other nodes call one that node 0 does not hear: two SYNs, and a greeting
KERNEL_CONNECTS_S = 0.3  # to call again where no greeting came: the kernel of a stopped process connects
# A node that lost node 0 in the rounds goes on to answer such calls for so long
PAIRS_CALLED_S = 8.0
ISOLATED_GPU_S = 0.04  # each piece of work that all GPUs do at the same time: longer than any launch by far
GPU_LOOK_S = 0.2  # between two looks of a rank at the clock event reasons of its GPU
GPU_HEALTH_S = 1.0  # for the thread that asks NVML to say what it saw: a call to the driver may hang
HANG_LOOK_S = 4.0  # a rank is inside a call for so long: NCCL RAS is asked before any rank is ended
HANG_LOG_S = 1.5  # reading the kernel's log for new GPU errors, before ranks that hang are ended
LEAST_BENCH_S = 5.0  # with less time no workers are started
END_WORKERS_S = 6.0  # for the nodes to say that their workers have ended
END_GPU_WORKERS_S = 14.0  # the same on GPUs: HANG_LOG_S, KILL_GPU_WORKERS_S, and the way to node 0
VERDICT_S = 2.0  # of --timeout, kept for the verdict when nodes are waited for at the end of a benchmark
KILL_WORKERS_S = 3.0  # for the workers of a node to die
# The same with CUDA contexts: the driver frees their memory and mappings first, of eight GPUs one after the other
KILL_GPU_WORKERS_S = 10.0
WORKERS_POLL_S = 0.1  # between two looks of a node at its workers
# Between two looks of node 0: what passed beyond was spent elsewhere and is no node's silence
LONGEST_GAP_S = 0.5
AWAKE_BEAT_S = 0.1  # between two beats by which a process notices that it stood still
STANDSTILL_LEAST_S = 2.0  # a gap between two beats that no load explains: a busy machine delays by less
# A process that stood still for so long may have missed what others waited for: they accuse after that time
STOOD_STILL_S = 3.0
TRY_POINT_S = 1.0  # of a point in each set of processes of --try: the rounds make it precise, not one set
COMPARE_S = 40.0  # the comparison of as-is and advised: starting torch on a busy node may take most of it
LEAST_COMPARE_S = 12.0  # with less time its workers could not start, form a group and measure
AFTER_COMPARE_S = 15.0  # of --timeout, kept for the benchmark that follows
COMPARE_ROUNDS_S = 8.0  # measuring all rounds of the comparison
TURN_POLL_S = 0.005  # between two looks for the result of a turn
TURN_LOOK_S = 0.2  # between two looks at the workers while they take turns

# --- Child processes that read facts ---

FACTS_DEADLINE_S = 10.0  # all facts of a node
FACTS_INNER_S = 1.5  # kept back of it: the readers end by themselves before the whole is given up
IMAGE_FACTS_S = 45.0  # all facts of a container image, whose tree may lie on slow storage
IMAGE_FACTS_INNER_S = 1.5  # kept back of it, likewise
RECORDED_S = 30.0  # reading a recorded machine: its tree may lie on a slow filesystem
RECORDING_S = 30.0  # recording this machine
CHILD_DYING_S = 1.0  # a child that was killed: in a hanging system call it does not go
NAMES_S = 5.0  # this host's own names: resolv.conf gives a name server 5 s
# "localhost" is in a file: no answer by then, and a file of the resolver may hang
RESOLVER_LOOK_S = 1.5
RESOLVER_FILE_S = 0.5  # reading such a file, to name it
# A name server answers for this node's own name by then, or look-ups wait for it in vain: 5 s each (resolv.conf(5))
NAME_SERVER_S = 2.0
NAME_SERVER_WAIT_S = 5  # that wait: the default of timeout in resolv.conf(5)
NAME_SERVER_AGAIN_S = 0.7  # between two queries: datagrams get lost
NVML_S = 5.0  # asking NVML: the driver initializes each GPU first where no persistence daemon runs
NVML_SILENT_S = 1.0  # a child that has said nothing for so long hangs in its last call
GPU_LOG_S = 3.0  # reading the kernel's log
GPU_WORK_HUNG_S = 5.0  # a GPU whose test makes no progress for so long hangs
GPU_WORK_LOOK_S = 0.25  # between two looks at how long the processes of these tests waited for a core
VERBS_S = 4.0  # listing RDMA devices through libibverbs
VERBS_LEAST_S = 1.0  # for their active MTU, even where the time is over
COUNTERS_AGAIN_S = 2.0  # the second reading of RDMA counters
NCCL_ASK_S = 10.0  # loading NCCL and asking it for its choice of network
NCCL_LOADING_S = 3.0  # loading the other libraries and the plug-ins, at most
NCCL_LOADING_KEPT_S = 1.5  # kept back for that, at least
NCCL_LISTENER_DYING_S = 2.0  # the process that holds NCCL's bootstrap port, after its deadline
LOADER_CACHE_S = 5.0  # ldconfig -p
LOADING_DYING_S = 0.5  # kept back by the child that loads libraries, to end its own children
CODE_S = 8.0  # hashing the code
CODE_SEEN_S = 4.5  # a path of the code that was not even seen by then is on a dead mount
CODE_INNER_S = 1.0  # kept back: the child ends by itself
PATH_S = 4.5  # a path that did not answer by then is called dead
PATH_LIST_S = 3.0  # listing it
PATH_READ_S = 3.5  # reading a file of it, counted from the same start
PATH_HUNG_S = 0.3  # after that time, which is looked at before each call: then a call hangs
# Looking into a folder of checkpoints: names and sizes, metadata, the ends of some hundred files
CHECKPOINT_S = 6.0
CHECKPOINT_INNER_S = 1.0  # kept back: the child ends by itself
CHECKPOINT_STALE_S = 60.0  # metadata is written last; the clocks of clients of one filesystem differ by less
PATH_DYING_S = 1.5  # all children together that look at paths, after their deadline
MARK_INNER_S = 1.0  # beyond the time for looking at a shared folder, to hear from the child
MARK_REMOVE_S = 2.0  # removing the file of this node from a shared folder
IMAGE_NCCL_S = 15.0  # asking the NCCL of a container image

# --- The running job (watch) ---

WATCH_PATIENCE_S = 60.0  # --patience: nothing advances for so long before the stacks are read
WATCH_LOOK_S = 5.0  # between two looks at the ranks; of a shorter --patience a part
WATCH_KEEP_S = 10.0  # writing the evidence of one look: the disk may be full, or its mount dead
WATCH_READ_S = 10.0  # one look at /proc: a process may hang in the kernel
WATCH_STACKS_APART_S = 10.0  # between the two stacks of each rank; of a short --patience a part
WATCH_STUDY_S = 300.0  # both stacks of all ranks of a node, and the files that are kept
STACK_S = 20.0  # py-spy at one process, on a loaded machine
DEATHS_POLL_S = 0.2  # processes to wait for are added as often
WATCH_STOP_S = 10.0  # --on-hang stop: between SIGTERM and SIGKILL
WATCH_TICK_S = 1.0  # between two looks of node 0 at whether a node has something urgent to say
WATCH_MEET_S = 120.0  # the watchers of all nodes come within so long; who comes later is still let in
WATCH_RETRY_S = 5.0  # between two attempts to reach node 0's watcher
WATCH_CALL_S = 10.0  # one attempt
WATCH_SILENT_S = 15.0  # a node that sends no beat for so long (and three of them) counts as silent
WATCH_CALLED_S = 600.0  # a node that is not heard is called for so long
WATCH_SETTLE_S = 2.0  # after a rank failed: until an earlier failure on another node is known
WATCH_ANSWER_S = 20.0  # how much longer than its own two stacks a node's answer on them may take
WATCH_AT_ONCE_S = 1.0  # a rank that the kernel ended within so long after the first to end was the culprit
WATCH_CLOCK_S = 1.5  # the clock of a node may seem so much off because its beat was read late
WATCH_LAST_WORD_S = 5.0  # after the job ended with a failure: for node 0 to say which rank was first
WATCH_RAS_S = 12.0  # NCCL RAS tells of a job that hangs, after RAS_GATHER_S for each of two rounds
WATCH_NVML_S = 10.0  # what NVML tells of the GPUs of a job that hangs; asked while RAS answers
READING_TOLD_S = 5.0  # between two lines of progress while a large log is read
WATCH_EXPLAIN_S = 60.0  # explain over what was kept: tens of megabytes, on a loaded machine
WATCH_ISOLATE_S = 400.0  # --isolate: ISOLATE_TIMEOUT_S, and the start
WATCH_GPU_ERROR_S = 900.0  # an Xid that is older is not why the job hangs now
OUTPUT_FLUSH_S = 5.0  # until what a job wrote is passed on and kept; a reader may take nothing
OUTPUT_POLL_S = 0.005  # between two looks whether it is
SOCK_DIAG_S = 2.0  # the kernel lists the TCP connections of this node
WATCH_FORWARD_S = 1.0  # the same signal again within so long is passed on once
DUMP_S = 10.0  # torch writes the flight recorder after it was asked through its pipe

# --- ssh ---

REMOTE_TASK_S = 30.0  # on a node: for its task, after it has greeted the head node
REMOTE_ENDING_S = 5.0  # on a node whose connection is gone: until its process ends whatever it does
# Between two questions whether a connection still answers (ServerAliveInterval, whole seconds)
SSH_ALIVE_S = 5
FLEET_KILL_S = 2.0  # ending the ssh processes: before SIGKILL, and for the thread that reads them
SSH_CONNECT_S = 10.0  # ssh's ConnectTimeout
SSH_BYE_S = 3.0  # the remote processes may take so long to end by themselves
SSH_COLLECT_S = 1.0  # reading what the hosts have said when the run is interrupted
