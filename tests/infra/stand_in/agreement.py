"""Whether two records of a provider agree: what its pages say (published/), what its source says (published/types/)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.infra.parity_published import Cloud
from tests.infra.stand_in.schema import PUBLISHED, Field, published

_PAGES_ALONE = {
    "alicloud_vpc": {"router_table_id"},  # its page lists among the arguments what the source only tells
    "tencentcloud_cls_index.rule.key_value.key_values.value": {"child_node"},  # nested in itself, to a depth: left out
    "tencentcloud_cls_index.rule.tag.key_values.value": {"child_node"},
}
_SOURCE_ALONE = {
    "alicloud_cms_alarm": {
        "notify_type",
        "operator",
        "statistics",
        "threshold",
        "triggered_count",
    },  # old, no longer told
}


def disagreements(cloud: Cloud) -> Iterator[str]:
    """Arguments, required ones and blocks that only one of the two knows; and another edition."""
    pages = json.loads((PUBLISHED.parent / f"{cloud.folder}.json").read_text("utf-8"))
    source = json.loads((PUBLISHED / f"{cloud.folder}.json").read_text("utf-8"))
    for name in ("provider", "version", "commit"):
        if pages[name] != source[name]:
            yield f"published/{cloud.folder}.json and published/types: {name} differs"
    known = published(cloud.prefix)
    for section, kinds in (("resource", known.resources), ("data", known.data)):
        for name in sorted(set(pages[section]) ^ set(kinds)):
            yield f"{name} is in one of published/{cloud.folder}.json and published/types alone"
        for name in sorted(set(pages[section]) & set(kinds)):
            fields = {key: field for key, field in kinds[name].fields.items() if key != "id"}
            yield from _of_block(pages[section][name], fields, name)


def _of_block(page: Mapping[str, Any], fields: Mapping[str, Field], where: str) -> Iterator[str]:
    given = {name for name, field in fields.items() if field.how != "computed"}
    named = set(page["arguments"])
    if differ := (named - given - _PAGES_ALONE.get(where, set())) | (given - named - _SOURCE_ALONE.get(where, set())):
        yield f"{where}: page and source do not both take {', '.join(sorted(differ))}"
    required = {name for name, field in fields.items() if field.how == "required"}
    if differ := required ^ set(page.get("required", ())):
        yield f"{where}: page and source do not both require {', '.join(sorted(differ))}"
    blocks = {name: field.of for name, field in fields.items() if field.is_block and isinstance(field.of, Mapping)}
    if differ := set(blocks) ^ set(page.get("blocks", {})):
        yield f"{where}: page and source do not both have blocks {', '.join(sorted(differ))}"
    for name, inner in page.get("blocks", {}).items():
        yield from _of_block(inner, blocks.get(name, {}), f"{where}.{name}")
