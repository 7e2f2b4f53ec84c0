"""The tools of the agents that have none of their own."""


def read_file(path: str) -> str:
    """Returns the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_file(path: str, text: str) -> str:
    """Appends a text to a file, so that a second call shows."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
    return "written"
