"""Find idle GPU instances and walk them down the policy's ladder. Serves Lambda, Function Compute and SCF."""

from costguard.faas.handler import build_handler

handler = build_handler("idle_gpu")
