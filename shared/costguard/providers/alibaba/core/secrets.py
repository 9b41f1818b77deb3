"""Secrets of the settings in Alibaba Cloud's KMS Secrets Manager, through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable

from costguard.providers.alibaba.core.errors import fix_for
from costguard.providers.alibaba.core.products import host_of
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.core.secrets import Secrets, with_decryption
from costguard.providers.kit.core.signing import no_clock
from costguard.providers.kit.iam.purposes import Purpose


class AlibabaSecrets(Secrets):
    """As `Secrets`: the version that is staged ACSCurrent. API: KMS GetSecretValue (2016-01-20).

    Raises:
        ValueError: no name of a region.
    """

    def __init__(
        self,
        cloud: str,
        region: str,
        keys: Keys | None,
        *,
        endpoint: str = "",
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        host_of(cloud, "kms", region)
        session = AlibabaSession(
            keys=keys,
            now=no_clock,
            cloud=cloud,
            home_region=region,
            endpoint=endpoint,
            deadline=seconds_left,
            purpose=Purpose.SECRET,
        )
        super().__init__(
            session,
            "kms",
            lambda name, _: {"SecretName": name},
            _text_in,
            lambda error: with_decryption(fix_for(error), error),
        )


def _text_in(answer: Fields) -> str:
    return text(answer, "SecretData") if named(answer, "SecretDataType") == "text" else ""
