"""Runs: launches ranks, records what they send, and reads the kernel's counters."""
