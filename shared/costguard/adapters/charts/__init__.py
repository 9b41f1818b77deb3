"""Charts from plain values: SVG that follows a page's colours and fonts, and PNG for mail and chat."""

from costguard.adapters.charts.drawing import Picture, png, svg

__all__ = ["Picture", "png", "svg"]
