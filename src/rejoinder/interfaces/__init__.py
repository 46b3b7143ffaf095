"""Export targets for other libraries, and adapters that let them use rejoinder's encoders.

Each adapter is a module named after its library, and imports the library when it is imported.
"""
