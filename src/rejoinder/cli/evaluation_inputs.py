"""What evaluation is handed: it knows no folder of pairs, so the package api reads it."""

from rejoinder.api.encoders import load_encoder as open_encoder
from rejoinder.api.pairs import response_pairs

__all__ = ["open_encoder", "response_pairs"]
