"""The data of a run: pairs and labelled files as batches of token ids."""
