"""Where records are kept: SQLite, PostgreSQL, DynamoDB."""
