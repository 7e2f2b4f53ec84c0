# The tool of `llm --functions`: a process for each call.
import subprocess


def t(n: int) -> str:
    """A tool."""
    return subprocess.run(["/bin/echo", f"done: {n}"], capture_output=True, text=True).stdout
