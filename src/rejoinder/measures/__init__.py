"""Measures of two arrays: correlations, ranks, cosines and angles."""
