"""Commands that act by hand: a function as its host calls it, one action taken back, one looked at again."""
