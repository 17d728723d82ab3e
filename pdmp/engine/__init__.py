"""Running a process: the event loop, chains, recordings, results. Knows no sampler."""
