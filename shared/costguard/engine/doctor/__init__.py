"""What enforcing rests on, looked at one by one."""
