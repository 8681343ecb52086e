"""The exit codes of ncclcheck. It imports nothing, so that `ncclcheck/__main__.py` may import it before all else."""

PASS = 0  # everything that had to run ran, and nothing is at or above the gate
FOUND = 1  # a finding at or above the gate
USAGE = 2  # wrong usage or configuration
UNKNOWN = 3  # inconclusive: something that had to run did not
BENCH = 4  # the benchmark missed its floor or baseline
STOPPED = 4  # watch stopped a job that hung
BUG = 70  # in ncclcheck
INTERRUPTED = 130

FIRST_WINS = (BUG, INTERRUPTED, FOUND, BENCH, UNKNOWN)  # where several apply
JUDGED = (PASS, FOUND, BENCH)  # everything that had to run ran
