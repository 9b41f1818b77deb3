"""Alibaba Cloud: keys, what is allowed for each kind, their rotation and succession."""
