"""Take what people answer in Slack and by Keep links. Serves HTTP on Lambda, Function Compute and SCF."""

from costguard.faas.handler import build_http_handler

handler = build_http_handler("slack_actions")
