"""Library calls that combine training, evaluation and the runtime. Each command makes one call."""
