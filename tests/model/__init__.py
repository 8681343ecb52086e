"""Tests of `ncclcheck.model`."""
