"""Tencent Cloud: the session and what every capability rests on."""
