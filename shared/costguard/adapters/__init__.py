"""What serves a port and is no cloud: ledgers, channels, object stores, sources of policies and of signals, charts."""
