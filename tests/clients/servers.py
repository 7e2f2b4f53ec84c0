"""Starts what tests/clients asks: the mock provider, and a tc-serve before a provider."""
import os, re, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
installed = os.path.join(root, "target", "clients")
PYTHON = os.path.join(installed, "python", "bin", "python")
NODE = os.path.join(installed, "node_modules", ".bin", "node")


def start_mock(indexes):
    """The mock provider and its address."""
    mock = subprocess.Popen([sys.executable, os.path.join(here, "mock.py"), *indexes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return mock, f"http://127.0.0.1:{mock.stdout.readline().strip()}"


def start_server(bin, api, base, name, *options):
    """A tc-serve with these options before the provider at `base`, and its address: the line that it writes to standard output."""
    environment = {**os.environ, **{f"{name}_API_KEY": "none" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL", "COHERE", "CO")}}
    path = os.path.join(root, "target", f"clients-{name}.log")
    with open(path, "w") as errors:
        server = subprocess.Popen(
            [os.path.join(bin, "tc-serve"), "--listen", "127.0.0.1:0", "--api", api, "--base-url", base, "--retries", "0", *options],
            stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=environment, text=True)
    found = re.search(r"http://[\w.:\[\]]+", server.stdout.readline())
    if not found:
        sys.exit(f"tests/clients: tc-serve --api {api} did not start: {open(path).read().strip()}")
    return server, found.group(0)
