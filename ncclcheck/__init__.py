"""ncclcheck: are these nodes and this network fit for a multi-node GPU job, and if not, why not."""

__version__ = "0.1.0"
