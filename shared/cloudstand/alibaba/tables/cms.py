"""CloudMonitor, version 2019-01-01."""

_READING = """
    Namespace!           text
    MetricName!          text
    Dimensions           text
    Period               text
    StartTime            text
    EndTime              text
    Length               text
    NextToken            text
    ~Express             text
"""

CMS = {
    "DescribeMetricList": _READING,
    "DescribeMetricLast": _READING,
    "DescribeMetricMetaList": """
        Namespace            text
        MetricName           text
        PageNumber           whole 1-100000
        PageSize             whole 1-10000
        ~Labels              text
    """,
    "DescribeMonitoringAgentStatuses": """
        InstanceIds              text            # separated by commas
        ~HostAvailabilityTaskId  text
    """,
}
