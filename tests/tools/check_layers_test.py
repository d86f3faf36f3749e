"""Planted includes must be caught by tools/check_layers.py, and allowed ones must pass."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"


def check(files):
    """Writes {path: text} into a fresh tree and returns (exit code, lines of stdout)."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        result = subprocess.run(
            [sys.executable, str(CHECK), root], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout.splitlines()


class CheckLayers(unittest.TestCase):
    def test_arrows_that_go_down_pass(self):
        code, lines = check({
            "headlight/nn/linear.cc": '#include "headlight/kernels/gemm/gemm.h"\n',
            "headlight/train/trainer.h": '#include "headlight/io/file.h"\n#include <vector>\n',
            "apps/headlight/main.cc": '#include "headlight/report/table.h"\n#include "CLI/CLI.hpp"\n',
        })
        self.assertEqual((code, lines), (0, []))

    def test_arrow_that_goes_up_is_named_with_its_line(self):
        code, lines = check({
            "headlight/kernels/gemm/gemm.cc": '#include <cmath>\n\n#include "headlight/nn/linear.h"\n'})
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("headlight/kernels/gemm/gemm.cc:3: kernels -> nn"), lines)

    def test_analysis_and_train_do_not_know_each_other(self):
        code, lines = check({
            "headlight/analysis/a.h": '#include "headlight/train/t.h"\n',
            "headlight/train/t.h": '#  include "headlight/analysis/a.h"\n'})
        self.assertEqual((code, len(lines)), (1, 2))

    def test_nothing_in_the_library_knows_the_program(self):
        code, _ = check({"headlight/report/page.cc": '#include "apps/headlight/flags.h"\n'})
        self.assertEqual(code, 1)

    def test_highway_target_include_counts(self):
        code, _ = check({
            "headlight/tensor/x.cc": '#define HWY_TARGET_INCLUDE "headlight/nn/x-inl.h"\n'})
        self.assertEqual(code, 1)

    def test_heavy_header_only_outside_public_headers(self):
        text = "#include <nlohmann/json.hpp>\n"
        self.assertEqual(check({"headlight/io/x.h": text})[0], 1)
        self.assertEqual(check({"headlight/io/x.cc": text, "headlight/io/x-inl.h": text})[0], 0)

    def test_unknown_layer_is_an_error(self):
        self.assertEqual(check({"headlight/misc/x.h": "\n"})[0], 1)

    def test_empty_tree_is_an_error(self):
        self.assertEqual(check({})[0], 2)


if __name__ == "__main__":
    unittest.main()
