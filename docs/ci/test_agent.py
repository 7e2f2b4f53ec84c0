"""Tests of an agent from the log of a run: no key, no model, no network, and no tool runs.

pytest runs them in the root of your repository. Record the log once: react --tools … --log tests/agent/trip.ndjson …
"""

import pathlib
import subprocess

FOLDER = pathlib.Path("tests/agent")
LOG = FOLDER / "trip.ndjson"


def replay(*options):
    """Runs the agent again from its log."""
    command = ["react", "--tools", FOLDER / "tools.json", "--replay", LOG, "--plain", *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def test_the_agent_does_what_it_did():
    run = replay("--expect", LOG)
    assert run.returncode == 0, run.stdout + run.stderr


def test_an_answer_that_breaks_off_reserves_nothing():
    for fault in ["--cut-at", "--error-at"]:
        for byte in range(0, 3000, 1000):
            run = replay(fault, str(byte))
            assert run.returncode == 2, (fault, byte, run.stdout)
            assert "<- reserve" not in run.stdout, (fault, byte, run.stdout)


def test_how_the_answer_is_cut_into_reads_changes_nothing():
    run = replay("--resplit", "random:1", "--expect", LOG)
    assert run.returncode == 0, run.stdout + run.stderr
