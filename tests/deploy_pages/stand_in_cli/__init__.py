"""The vendors' command lines on a reader's path, answered by the sandbox."""
