"""What a run reads: pairs and labelled files as batches of token ids."""
