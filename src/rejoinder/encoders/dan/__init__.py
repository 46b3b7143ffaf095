"""The deep averaging network (Yang et al. 2018, §2.3.1)."""
