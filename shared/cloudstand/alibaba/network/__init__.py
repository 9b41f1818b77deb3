"""Networks, interfaces, addresses, security groups and flow logs, and changes of them."""
