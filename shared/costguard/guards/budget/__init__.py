"""How far is this budget spent, and where does it end?"""
