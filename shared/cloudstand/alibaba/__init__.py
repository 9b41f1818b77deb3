"""The world shown as Alibaba Cloud: RPC requests, their signatures, and the vendor's own words for refusing."""
