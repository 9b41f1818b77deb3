"""Published policies: immutable bundles in a store of whole files, each checked by its hash when it is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from costguard.domain.errors import NotFoundError, UnavailableError
from costguard.policy.documents.bundle import bundle_bytes, bundle_digest, bundle_files, bundle_name
from costguard.ports import ObjectStore, PolicyText

_MOST_KEPT = 8  # a policy and the one before it, of a few ledgers
_FETCHED: Final[dict[tuple[str, str], Mapping[str, str]]] = {}
"""What this process has fetched: a hash names the same bytes for ever, so nothing in it grows old."""


class BundleShelf:
    """The bundles at one address; `origin` is that address, for messages."""

    def __init__(self, objects: ObjectStore, origin: str) -> None:
        self._objects = objects
        self.origin = origin

    def keep(self, files: Mapping[str, str]) -> str:
        """Keep the bundle of these files, see that it can be fetched, and return its hash. Safe to repeat.

        Raises:
            InvalidInputError: what is kept is not what was put.
            ProviderError: not kept, or not known to be.
        """
        body = bundle_bytes(files)
        digest = bundle_digest(body)
        self._objects.put(bundle_name(digest), body, "application/json")
        bundle_files(self._objects.get(bundle_name(digest)), digest)
        return digest

    def fetch(self, digest: str) -> PolicyText:
        """The files of the bundle that is called so; its hash is the revision.

        Raises:
            InvalidInputError: altered, or of a newer Costguard.
            ProviderError: it could not be read, or is not there.
        """
        known = _FETCHED.get((self.origin, digest))
        if known is None:
            try:
                body = self._objects.get(bundle_name(digest))
            except NotFoundError as err:
                message = f"the published policy {digest[:12]} is not at {self.origin}: {err}"
                raise UnavailableError(message, operation=err.operation, code=err.code) from err
            known = bundle_files(body, digest)
            while len(_FETCHED) >= _MOST_KEPT:
                _FETCHED.pop(next(iter(_FETCHED)), None)
            _FETCHED[self.origin, digest] = known
        return PolicyText(known, digest, f"{self.origin} {digest[:12]}")
