"""Tests of `ncclcheck.cli`."""
