"""Shared by all sessions: pacing, retries, pages, fields of answers, the gate, redaction."""
