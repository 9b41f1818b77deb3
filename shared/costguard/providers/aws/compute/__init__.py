"""AWS: instances, how busy they are, and the four changes to them."""
