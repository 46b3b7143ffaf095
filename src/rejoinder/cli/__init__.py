"""The command line: a module per command parses, calls the library and prints."""
