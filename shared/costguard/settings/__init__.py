"""What the surroundings say: the environment variables Costguard reads, each once, checked, and nothing else."""

from costguard.settings.model import Access, AccessKey, Secret, SecretReference, Settings
from costguard.settings.reading import load_settings, process_environment, process_settings, references_in, with_secrets
from costguard.settings.variables import LANGUAGES, LOG_LEVELS, VARIABLES, Variable

__all__ = [
    "LANGUAGES",
    "LOG_LEVELS",
    "VARIABLES",
    "Access",
    "AccessKey",
    "Secret",
    "SecretReference",
    "Settings",
    "Variable",
    "load_settings",
    "process_environment",
    "process_settings",
    "references_in",
    "with_secrets",
]
