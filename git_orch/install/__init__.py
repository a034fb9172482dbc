"""Where the hooks of a client are put and taken away: the launcher, settings files, git's configuration, one firing."""
