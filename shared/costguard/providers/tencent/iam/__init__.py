"""Tencent Cloud: permissions, the policies made from them, what a run is allowed, and launch freezes."""
