"""EC2's machines, CloudWatch and the audit trail, as the world has them."""
