"""Refusals in the vendor's form: a dotted code, and a message in the language that was asked for."""

from __future__ import annotations


class ApiError(Exception):
    """The request is refused; nothing was done. `chinese` is the message for X-TC-Language zh-CN, its default."""

    def __init__(self, code: str, message: str, chinese: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.chinese = chinese or message

    def told(self, language: str) -> dict[str, str]:
        """The error as it stands in an answer."""
        return {"Code": self.code, "Message": self.message if language == "en-US" else self.chinese}


def missing(name: str) -> ApiError:
    """A required parameter is not there."""
    return ApiError(
        "MissingParameter", f"The request is missing a required parameter `{name}`.", f"缺少必要参数`{name}`。"
    )


def unknown(name: str) -> ApiError:
    """A parameter that is not published."""
    return ApiError("UnknownParameter", f"The parameter `{name}` is not recognized.", f"未知参数`{name}`。")


def mistyped(name: str, wanted: str) -> ApiError:
    """A parameter of the wrong type."""
    return ApiError("InvalidParameter", f"The parameter `{name}` is not of type {wanted}.", f"参数`{name}`类型错误。")


def bad_value(name: str, why: str, code: str = "InvalidParameterValue") -> ApiError:
    """A parameter of the right type with a value that is not allowed."""
    return ApiError(code, f"The value of the parameter `{name}` is not valid: {why}.", f"参数`{name}`取值错误。")


def not_modelled(name: str) -> ApiError:
    """Published, and without a counterpart here: nothing is overlooked in silence. No code of the vendor's."""
    return ApiError("Emulator.NotModelled", f"`{name}` is not modelled by this emulator.", f"模拟器不支持`{name}`。")


def denied(code: str, service: str, action: str, resource: str) -> ApiError:
    """CAM says no."""
    return ApiError(
        code,
        f"you are not authorized to perform operation ({service}:{action})\nresource ({resource}) has no permission",
        f"您没有权限执行操作 ({service}:{action})，资源 ({resource})",
    )
