"""docs/permissions.md shows the documents as the code makes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from costguard.providers.alibaba.iam import policy_documents as alibaba
from costguard.providers.aws.iam import policy_documents as aws
from costguard.providers.kit.iam.policy_documents import EVERYWHERE, Document, Narrowing, denials, table
from costguard.providers.tencent.iam import policy_documents as tencent

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
MADE: dict[str, Callable[[Narrowing], dict[str, Document]]] = {
    "aws": aws.documents,
    "alibaba": alibaba.documents,
    "tencent": tencent.documents,
}


@pytest.mark.parametrize("cloud", MADE)
def test_the_page_shows_every_document(cloud: str) -> None:
    """Where this fails: put what it expects between the marks of the page."""
    text, documents = PAGE.read_text(encoding="utf-8"), MADE[cloud](EVERYWHERE)
    for mark, wanted in ((cloud, table(documents)), (f"deny {cloud}", denials(documents["deny"]))):
        assert text.partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- end of {mark} -->")[0] == wanted
