"""Stand-ins for the providers of Alibaba Cloud and Tencent Cloud: docs/decisions/stand-in-terraform-provider.md."""
