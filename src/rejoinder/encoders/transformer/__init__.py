"""The Transformer (Yang et al. 2018, §2.3.2)."""
