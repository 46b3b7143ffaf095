"""An encoder that is as good as one says."""

import re

import numpy as np

PAIRS = [(f"a {row}", f"b {row}", 5 - row / 12) for row in range(60)]


class Noisy:
    """An encoder whose cosines of PAIRS follow gold more or less closely."""

    def __init__(self, name, noise):
        self.name, self.noise = name, noise

    def describe(self):
        return {"name": self.name}

    def encode(self, sentences):
        generator = np.random.default_rng(len(self.name))
        rows = [re.fullmatch(r"b (\d+)", text) for text in sentences]
        angles = np.array([int(row[1]) / 60 if row else 0.0 for row in rows])
        angles += self.noise * generator.normal(size=len(sentences))
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
