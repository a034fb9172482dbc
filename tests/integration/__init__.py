"""Tests on real git and real processes."""
