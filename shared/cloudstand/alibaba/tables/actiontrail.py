"""ActionTrail, version 2020-07-06: the events of the last 90 days."""

ACTIONTRAIL = {
    "LookupEvents": """
        LookupAttribute.2.Key     text
        LookupAttribute.2.Value   text
        StartTime                 text
        EndTime                   text
        MaxResults                whole 0-50
        NextToken                 text
        Direction                 FORWARD|BACKWARD
    """,
}
