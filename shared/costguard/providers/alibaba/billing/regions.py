"""Regions as bills name them: in words (`华东1（杭州）`, `China (Hangzhou)`), in the language of the site. Pure."""

from __future__ import annotations

import re
from types import MappingProxyType

_CITIES = MappingProxyType(
    {
        "cn-hangzhou": ("杭州", "hangzhou"),
        "cn-shanghai": ("上海", "shanghai"),
        "cn-nanjing": ("南京", "nanjing"),
        "cn-fuzhou": ("福州", "fuzhou"),
        "cn-qingdao": ("青岛", "qingdao"),
        "cn-beijing": ("北京", "beijing"),
        "cn-zhangjiakou": ("张家口", "zhangjiakou"),
        "cn-huhehaote": ("呼和浩特", "hohhot"),
        "cn-wulanchabu": ("乌兰察布", "ulanqab"),
        "cn-shenzhen": ("深圳", "shenzhen"),
        "cn-heyuan": ("河源", "heyuan"),
        "cn-guangzhou": ("广州", "guangzhou"),
        "cn-chengdu": ("成都", "chengdu"),
        "cn-wuhan-lr": ("武汉", "wuhan"),
        "cn-hongkong": ("香港", "hong kong"),
        "ap-southeast-1": ("新加坡", "singapore"),
        "ap-southeast-3": ("吉隆坡", "kuala lumpur"),
        "ap-southeast-5": ("雅加达", "jakarta"),
        "ap-southeast-6": ("马尼拉", "manila"),
        "ap-southeast-7": ("曼谷", "bangkok"),
        "ap-northeast-1": ("东京", "tokyo"),
        "ap-northeast-2": ("首尔", "seoul"),
        "us-west-1": ("硅谷", "silicon valley"),
        "us-east-1": ("弗吉尼亚", "virginia"),
        "na-south-1": ("墨西哥", "mexico"),
        "eu-central-1": ("法兰克福", "frankfurt"),
        "eu-west-1": ("伦敦", "london"),
        "me-east-1": ("迪拜", "dubai"),
        "me-central-1": ("利雅得", "riyadh"),
    }
)
_BY_CITY = {name: region for region, names in _CITIES.items() for name in names}
_EVERYWHERE = frozenset(
    {
        *("-", "全球", "通用", "公共", "其他", "其它", "海外", "中国内地", "中国大陆", "非中国内地", "global", "other"),
        *("others", "none", "public", "overseas", "chinese mainland", "mainland china", "outside chinese mainland"),
    }
)
_APART = ("金融", "政务", "finance", "gov")  # clouds of their own in the same cities
_ID = re.compile(r"[a-z]{2}-[a-z]+(?:-[a-z0-9]+)*", re.ASCII)
_WITHIN = re.compile(r"^(.*?)[（(](.*)[)）]$")
_LOCAL = re.compile(r"\s*[-–]\s*(?:本地地域|local region|partner region|合作伙伴地域).*$")
_COUNTRY = "中国"


def region_of(name: str) -> str | None:
    """The id of a region that a bill names; None where it is not known, empty where it is no region's."""
    told = " ".join(name.split()).lower()
    if not told or told in _EVERYWHERE:
        return ""
    if any(word in told for word in _APART):
        return None
    if _ID.fullmatch(told) and told not in _BY_CITY:
        return told
    within = _WITHIN.match(told)
    candidates = (within[2], within[1]) if within else (told,)
    for candidate in candidates:
        city = _LOCAL.sub("", candidate).strip().removeprefix(_COUNTRY)
        if city in _BY_CITY:
            return _BY_CITY[city]
    return None
