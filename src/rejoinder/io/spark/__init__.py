"""Sessions of Spark, and errors that cross from its executors to the driver."""
