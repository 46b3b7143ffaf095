"""The version of the package: here, so that every room can name it without importing the others."""

VERSION = "0.1.0"
