"""What the surroundings say: the environment variables Costguard reads, each once, checked, and nothing else."""

from costguard.settings.model import Access, AccessKey, Secret, Settings
from costguard.settings.reading import load_settings, process_settings
from costguard.settings.variables import LANGUAGES, LOG_LEVELS, VARIABLES, Variable

__all__ = [
    "LANGUAGES",
    "LOG_LEVELS",
    "VARIABLES",
    "Access",
    "AccessKey",
    "Secret",
    "Settings",
    "Variable",
    "load_settings",
    "process_settings",
]
