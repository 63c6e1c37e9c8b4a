"""Judges: whether an answer is right and, if not, which mistake it is."""
