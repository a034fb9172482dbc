"""Tests of pure functions: no git, and no process but the bare interpreter."""
