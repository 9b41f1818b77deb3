"""From the files of a policy repository to the compiled policy."""
