"""What the comparisons with other libraries share: processes that take turns, and what to say about a run.

Only the standard library: the peers live in a virtual environment that is made from a requirements file.
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import venv


def say(text):
    print(text, file=sys.stderr, flush=True)


def one_of_each_core(processors):
    """Processors without those that share a core with one before."""
    chosen, siblings = [], set()
    for number in sorted(processors):
        core = pathlib.Path(f"/sys/devices/system/cpu/cpu{number}/topology/core_cpus_list")
        name = core.read_text() if core.exists() else str(number)
        if name not in siblings:
            siblings.add(name)
            chosen.append(number)
    return chosen


class Side:
    """A process that stays alive and waits, without work, between its requests: one line each, answered by one JSON
    object a line. The first object says what it is."""

    def __init__(self, name, command, environment=None, processors=None):
        """processors: how many it may run on, of different cores; all unless given."""
        self.name = name
        allowed = os.sched_getaffinity(0)
        if processors:
            allowed = one_of_each_core(allowed)[:processors]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})},
            preexec_fn=lambda: os.sched_setaffinity(0, allowed))
        self.ready = self.answer()
        self.idle_bytes = self.memory("VmRSS")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        return self.answer()

    def memory(self, field):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise SystemExit(f"{self.name}: no {field} in its status")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# glibc gives large blocks back to the system after each use; keeping them is what helps PyTorch most.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}


def python_of(folder, requirements):
    """The interpreter of the virtual environment, made with the requirements if it is not there."""
    python = pathlib.Path(folder).resolve() / "bin" / "python"
    if not python.exists():
        say(f"making {folder} with {requirements}")
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
    return python


def spread(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values), "all": values}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
