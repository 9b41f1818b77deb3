"""See that encryption keys get new material as often as the policy asks. Serves Lambda, FC and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("kms_rotation")
