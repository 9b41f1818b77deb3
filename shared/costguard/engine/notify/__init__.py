"""What people are told: notices written, put into the outbox, and delivered."""
