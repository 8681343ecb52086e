"""Tests of ncclcheck.advice."""
