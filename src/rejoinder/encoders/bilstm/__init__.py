"""The bidirectional LSTM with max pooling (Conneau et al. 2017)."""
