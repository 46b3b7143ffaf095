"""The tables and figures of Yang et al. 2018, made anew."""
