"""git-orch: reviews the exact tree an agent left, off to the side, and leaves nothing behind."""

__version__ = "0.1.0"
