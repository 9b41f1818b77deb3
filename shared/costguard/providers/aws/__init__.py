"""AWS: partitions aws, aws-cn and aws-us-gov."""
