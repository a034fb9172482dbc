"""Real agent clients against a scripted provider on loopback: how they behave as reviewers, and as who is reviewed."""
