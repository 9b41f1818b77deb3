"""Is this key rotated as often as the policy asks?"""
