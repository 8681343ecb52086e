"""Tests of `ncclcheck.report`."""
