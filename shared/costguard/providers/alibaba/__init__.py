"""Alibaba Cloud: the China site (`alibaba`) and the international one (`alibaba-intl`)."""
