"""Benchmarks: each returns rows of figures and ratios, measured side by side in one run."""
