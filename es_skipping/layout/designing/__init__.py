"""Dry runs of several layouts on one sample, to choose between them before anything is written."""
