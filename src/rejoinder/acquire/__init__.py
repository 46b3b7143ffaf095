"""Getting data sets: local archives and downloads, recognised, cleaned, laid out as files."""
