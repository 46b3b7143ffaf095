"""What other libraries load, call or are called by: export targets, and adapters of encoders.

Each adapter is a module named after the library that it is for, and imports it when it is imported.
"""
