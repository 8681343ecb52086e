"""Tests of ncclcheck.nccl."""
