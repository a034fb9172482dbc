"""Tests of `git orch` as it is installed."""
