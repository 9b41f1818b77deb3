"""What each action may be asked, by product: the published names, types, ranges and required flags."""
