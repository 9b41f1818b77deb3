"""The real providers against the emulators, in one thread and without a socket, judged by the same oracle."""
