"""What is raised when a stand-in is asked for what it cannot do; what clouds refuse is `WorldRefusalError`."""


class MisuseError(ValueError):
    """Whoever steers a stand-in made a mistake: no such button, or a second AWS in this process."""
