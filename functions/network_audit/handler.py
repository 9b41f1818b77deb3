"""Watch who can reach GPU instances, and mend what the policy lets be mended. Serves Lambda, FC and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("network_audit")
