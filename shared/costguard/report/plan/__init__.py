"""Plans, results and cases: tables for people, JSON for machines."""
