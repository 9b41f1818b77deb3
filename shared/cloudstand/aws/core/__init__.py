"""moto corrected and served: what is patched and why, its accounts, its answers, and the small server before it."""
