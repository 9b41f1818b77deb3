"""Is this network as the policy asks, and what would close a way in?"""
