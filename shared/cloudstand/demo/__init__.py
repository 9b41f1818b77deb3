"""The demo's world at the beginning of its story: machines, keys, networks, and what launch freezes attach."""
