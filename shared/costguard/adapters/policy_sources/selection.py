"""Which files of a folder are the policy, wherever the folder is kept."""

from __future__ import annotations

import difflib
from pathlib import PurePosixPath

MAX_FILES = 1000
RULES_FOLDER = "policies"
_SUFFIXES = frozenset({".yaml", ".yml"})


def is_yaml(name: str) -> bool:
    """By its ending, in any case."""
    return PurePosixPath(name).suffix.casefold() in _SUFFIXES


def is_hidden(name: str) -> bool:
    """Names that begin with a dot are left alone, and so is all that is under them."""
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def almost_rules(name: str) -> bool:
    """Whether a folder is called nearly as the one of the rules, so that they would be dropped in silence."""
    near = difflib.get_close_matches(name.casefold(), [RULES_FOLDER], cutoff=0.7)
    return bool(near) and name != RULES_FOLDER


def misnamed(shown: str) -> str:
    """What is said of such a folder, where YAML is in it."""
    return f"{shown}: rules are read from {RULES_FOLDER}/ only; rename the folder, or move it away"


def too_many(shown: str) -> str:
    """What is said of more files than a policy has."""
    return f"{shown}: more than {MAX_FILES} policy files; give the folder of the policy itself"


def none_here(shown: str) -> str:
    """What is said where there is no file of a policy."""
    return f"{shown}: no policy here; a policy folder holds costguard.yaml"
