"""What may go wrong while a bundle is made.

CostguardError
├── FetchError      packages, or the interpreter asked for, could not be had
└── RefusedBundleError  what was had is not what was pinned, or too large; nothing was written
"""

from __future__ import annotations

from costguard.domain.errors import CostguardError


class FetchError(CostguardError):
    """A package could not be had: try again, or give a folder of wheels."""


class RefusedBundleError(CostguardError):
    """A hash is not the pinned one, or a bundle is over its limit. Nothing was written."""
