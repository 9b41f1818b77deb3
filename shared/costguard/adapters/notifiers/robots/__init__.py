"""Robots of chat groups: DingTalk, Feishu and WeCom."""
