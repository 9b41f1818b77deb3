"""Regions as bills name them, by number or in words, in the words of every other product (`ap-guangzhou`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_REGIONS = (
    # number, region, and what stands in the brackets of its name: `华南地区（广州）`, `South China (Guangzhou)`
    (1, "ap-guangzhou", "广州", "Guangzhou"),
    (4, "ap-shanghai", "上海", "Shanghai"),
    (5, "ap-hongkong", "中国香港", "Hong Kong"),
    (6, "na-toronto", "多伦多", "Toronto"),
    (7, "ap-shanghai-fsi", "上海金融", "Shanghai Finance"),
    (8, "ap-beijing", "北京", "Beijing"),
    (9, "ap-singapore", "新加坡", "Singapore"),
    (11, "ap-shenzhen-fsi", "深圳金融", "Shenzhen Finance"),
    (15, "na-siliconvalley", "硅谷", "Silicon Valley"),
    (16, "ap-chengdu", "成都", "Chengdu"),
    (17, "eu-frankfurt", "法兰克福", "Frankfurt"),
    (18, "ap-seoul", "首尔", "Seoul"),
    (19, "ap-chongqing", "重庆", "Chongqing"),
    (21, "ap-mumbai", "孟买", "Mumbai"),
    (22, "na-ashburn", "弗吉尼亚", "Virginia"),
    (23, "ap-bangkok", "曼谷", "Bangkok"),
    (25, "ap-tokyo", "东京", "Tokyo"),
    (33, "ap-nanjing", "南京", "Nanjing"),
    (46, "ap-beijing-fsi", "北京金融", "Beijing Finance"),
    (72, "ap-jakarta", "雅加达", "Jakarta"),
    (74, "sa-saopaulo", "圣保罗", "São Paulo"),
)
_NUMBERS: Mapping[str, str] = MappingProxyType({str(number): region for number, region, *_ in _REGIONS})
_NAMES: Mapping[str, str] = MappingProxyType(
    {name.casefold(): region for _, region, *names in _REGIONS for name in names}
    | {"香港": "ap-hongkong", "sao paulo": "sa-saopaulo", "ashburn": "na-ashburn"}
)
_WORD = re.compile(r"(?:ap|na|eu|sa|me|af)-[a-z]+(?:-[a-z]+)?", re.ASCII)
_IN_BRACKETS = re.compile(r"[(（]([^()（）]+)[)）]")


def region_word(number: str, name: str = "") -> str:
    """The region of this number, or of this name where the number is unknown; empty where neither is known.

    A charge that belongs to no region has the number 0 and the name 其他.
    """
    if _WORD.fullmatch(number):
        return number
    known = _NUMBERS.get(number)
    if known is not None:
        return known
    found = _IN_BRACKETS.search(name)
    return _NAMES.get((found[1] if found else name).strip().casefold(), "")


def region_number(region: str) -> str:
    """What a bill calls this region; empty where that is unknown."""
    return next((number for number, known in _NUMBERS.items() if known == region), "")
