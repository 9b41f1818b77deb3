"""Secrets of the settings in AWS Secrets Manager, through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable

from costguard.providers.aws.core.errors import fix_for
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.fields import text
from costguard.providers.kit.core.secrets import Secrets, with_decryption
from costguard.providers.kit.iam.purposes import Purpose


class AwsSecrets(Secrets):
    """As `Secrets`: the version that is staged AWSCURRENT. API: Secrets Manager GetSecretValue."""

    def __init__(
        self,
        region: str,
        *,
        endpoint_url: str = "",
        profile: str = "",
        keys: tuple[str, str] | None = None,
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        session = AwsSession(
            home_region=region,
            endpoint_url=endpoint_url,
            profile=profile,
            keys=keys,
            deadline=seconds_left,
            purpose=Purpose.SECRET,
        )
        super().__init__(
            session,
            "secretsmanager",
            lambda name, _: {"SecretId": name},
            lambda answer: text(answer, "SecretString"),
            lambda error: with_decryption(fix_for(error), error),
        )
