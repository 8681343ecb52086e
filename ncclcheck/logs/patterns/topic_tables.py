"""All topics, as tables: cheap to import, since no pattern is compiled here."""

from __future__ import annotations

from ncclcheck.logs.patterns.topics_machine import MACHINE_TOPICS
from ncclcheck.logs.patterns.topics_network import NETWORK_TOPICS
from ncclcheck.logs.patterns.topics_platform import PLATFORM_TOPICS
from ncclcheck.logs.patterns.topics_program import PROGRAM_TOPICS
from ncclcheck.logs.patterns.topics_rdma import RDMA_TOPICS

ALL_TOPICS = NETWORK_TOPICS + RDMA_TOPICS + MACHINE_TOPICS + PROGRAM_TOPICS + PLATFORM_TOPICS
CLAIMED_BY_MESSAGE = "known-message"  # of an exception whose message a table of ncclcheck.logs.messages has
