"""EC2's networks over those of the world, and changes of them."""
