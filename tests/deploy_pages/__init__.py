"""The deploy pages, followed word for word against the sandbox."""
