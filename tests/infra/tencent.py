"""infra/tencent against what the provider tencentcloudstack/tencentcloud publishes."""

from __future__ import annotations

from tests.infra.parity_published import Cloud, against_published


def check() -> list[str]:
    """What is wrong, a line each; none where all is well."""
    return against_published(Cloud("tencent", "tencentcloud"))
