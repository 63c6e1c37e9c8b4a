"""Predicts: the laws of data parallelism as pure functions. Imports no torch and no widgets."""
