"""Tests of ncclcheck.advice.fragments."""
