"""What is not known yet, worked out from what is: exchange, burn, forecast. Pure."""
