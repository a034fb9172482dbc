"""The tests: `unit` (no process, no git), `integration` (real git, real processes), `acceptance` (as installed)."""
