"""What the command-line tests share: running the program, small data, a trained run."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SMALL = ["--dim", "16", "--layers", "1", "--heads", "2", "--epochs", "1", "--batch", "8", "--seed", "1"]
program = ""


def run(*arguments, stdin="", env=None, timeout=120):
    return subprocess.run([program, *map(str, arguments)], input=stdin.encode() if isinstance(stdin, str) else stdin,
                          capture_output=True, env=dict(os.environ, **(env or {})), timeout=timeout, check=False)


def small_data(path, rows=40):
    lines = ["text,label"]
    for i in range(rows):
        lines.append(f"{'good fine' if i % 2 else 'bad awful'} word{i % 7} number {i},{'pos' if i % 2 else 'neg'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class ProgramTest(unittest.TestCase):
    """A folder of its own for each case, and one small trained run that the cases of a class share."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="headlight-cli-"))
        cls.data = small_data(cls.shared / "data.csv")
        cls.run_directory = cls.shared / "run"
        result = run("train", "--data", cls.data, "--out", cls.run_directory, *SMALL)
        if result.returncode != 0:
            raise AssertionError(result.stderr.decode())

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=self.shared))

    def ok(self, *arguments, **options):
        """Runs what must work; returns its stdout."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr.decode("utf-8", "replace"))
        return result.stdout


def main():
    global program
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
