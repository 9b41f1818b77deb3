"""Is this GPU instance idle?"""
