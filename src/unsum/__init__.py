"""unsum undoes sums: fine nonnegative series from totals over time intervals, exactly."""

__version__ = "0.1.0"
