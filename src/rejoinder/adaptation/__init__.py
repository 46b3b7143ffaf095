"""A linear map fitted on graded pairs: u* = W u, for anything that encodes."""
