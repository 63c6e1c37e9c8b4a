"""Keeps the notebooks: builds labs from solutions, runs and stores notebooks, loads earlier answers."""
