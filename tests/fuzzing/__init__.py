"""Awkward inputs, made from a generator of random numbers: for tests and for benchmarks/fuzz.py."""
