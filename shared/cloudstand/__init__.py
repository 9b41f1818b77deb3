"""Stand-ins for clouds, Slack, chat robots and mail, with one made-up world behind them."""
