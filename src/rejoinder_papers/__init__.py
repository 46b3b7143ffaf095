"""Code for papers only: the tables and figures of Yang et al. 2018, and classical baselines."""
