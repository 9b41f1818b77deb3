"""What people are told, as neutral text: before and after an action, in answer to them, and once a week."""
