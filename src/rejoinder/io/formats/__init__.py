"""File formats that several packages read: compressed files, JSON lines and tables."""
