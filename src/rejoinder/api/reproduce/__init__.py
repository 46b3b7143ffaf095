"""Reproduces the tables and figures of Yang et al. 2018."""
