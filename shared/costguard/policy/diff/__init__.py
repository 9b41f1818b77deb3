"""What a changed policy means: what loosens, what tightens, which machines are affected."""
