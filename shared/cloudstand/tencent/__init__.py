"""Tencent Cloud's API 3.0 on loopback, over the one world: signatures, parameters, states and errors as on the wire."""
