"""Networks as they really are: what stands in them, and a short way to write one region's."""
