"""What people said: approvals, snoozes, the switch, and whose a machine is not."""
