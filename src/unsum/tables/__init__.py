"""Tables in and out: files and dataframes to columns, readings and series to files."""
