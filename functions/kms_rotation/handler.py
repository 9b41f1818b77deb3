"""Watch how encryption keys are rotated, and change none. Serves Lambda, FC and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("kms_rotation")
