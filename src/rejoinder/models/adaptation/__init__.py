"""Fits a linear map u* = W u on graded pairs and applies it to any encoder."""
