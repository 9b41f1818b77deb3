"""Watch what is spent against budgets: alert in time, and stop machines where told to. Serves Lambda, FC and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("budget")
