"""The judge: reads what the world saw and knows, never what the program believes."""
