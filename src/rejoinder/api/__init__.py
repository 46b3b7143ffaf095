"""Library calls that join training, evaluation and the runtime. Each command calls one of them."""
