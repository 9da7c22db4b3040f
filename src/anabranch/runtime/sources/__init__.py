"""Where rows come from: files, Spark tables, and DataFrames that the user binds."""
