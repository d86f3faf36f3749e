"""bench/peers/attention/run.py: which peer counts as the best, what a ratio is, which shapes are compared."""

import argparse
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers" / "attention"))
import run  # noqa: E402


def method(library, name, seconds, own):
    return {"library": library, "method": name, "difference": 1e-7, "seconds": run.spread(seconds),
            "time_over_headlight": run.spread([peer / ours for peer, ours in zip(seconds, own)])}


class Table(unittest.TestCase):
    def row(self, *peers):
        own = [0.002, 0.001, 0.004]
        return {"shape": "b1 h1 n8 d8", "threads": 2, "flops": 1e6, "peak": run.spread([1e9, 2e9, 1e9]),
                "methods": [method("Headlight", "fused", own, own), *(method(*peer, own) for peer in peers)]}

    def cells(self, row):
        return [cell.strip() for cell in run.table([row]).splitlines()[2].strip("|").split("|")]

    def test_the_best_peer_has_the_lowest_median(self):
        cells = self.cells(self.row(("Slow", "one", [0.001, 0.009, 0.009]), ("Fast", "two", [0.003, 0.003, 0.003])))
        self.assertEqual(cells[:3], ["b1 h1 n8 d8", "2", "2 (1 - 4)"])
        self.assertEqual(cells[5:7], ["Fast two", "3 (3 - 3)"])
        self.assertEqual(cells[7], "1.50 (0.75 - 3.00)")  # turn by turn: 3 / 2, 3 / 1, 3 / 4
        self.assertEqual(cells[8], "Slow one 2.25")

    def test_a_share_is_of_the_peak_of_its_turn(self):
        cells = self.cells(self.row())
        self.assertEqual(cells[3], "0.5")
        self.assertEqual(cells[4], "50.0 %")  # of 50 %, 50 % and 25 %
        self.assertEqual(cells[5:], ["none", "", "", ""])

    def test_heading_and_rows_have_the_same_columns(self):
        lines = run.table([self.row()]).splitlines()
        self.assertEqual(len({line.count("|") for line in lines}), 1)


class Shapes(unittest.TestCase):
    def shapes(self, lists, shape=None):
        return run.shapes_of(argparse.Namespace(lists=lists, shape=shape))

    def test_lists_of_ours_and_of_others_without_doubles(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# mine\nn5 d8 # short\n\nb1 h8 n512 d64\n")
            file.flush()
            shapes = self.shapes(["dense", file.name])
        self.assertEqual(shapes[0], "b1 h8 n512 d64")
        self.assertEqual(shapes[-1], "n5 d8")
        self.assertEqual(len(shapes), len(set(shapes)))

    def test_given_shapes_come_instead(self):
        self.assertEqual(self.shapes(["dense"], ["n5 d8"]), ["n5 d8"])


if __name__ == "__main__":
    unittest.main()
