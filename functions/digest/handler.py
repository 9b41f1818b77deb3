"""Tell every team once a week what was saved, what is still wasted, and what nobody saw. Serves Lambda, FC and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("digest")
