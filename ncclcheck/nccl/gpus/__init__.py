"""The GPUs of a node as NCCL sees them: which a job was given, and what NVLink joins."""
