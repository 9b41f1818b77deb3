"""Tencent Cloud, China and international sites: the only package that may import its SDK."""
