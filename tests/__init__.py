"""Tests of ncclcheck: the folders mirror the package."""
