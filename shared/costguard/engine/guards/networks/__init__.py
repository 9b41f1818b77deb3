"""Networks looked at, judged and changed."""
