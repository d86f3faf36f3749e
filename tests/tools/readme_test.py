"""The README's example is the compiled one, and what it links to is there."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Readme(unittest.TestCase):
    def test_code_is_the_compiled_example(self):
        example = (ROOT / "examples" / "classify.cc").read_text(encoding="utf-8")
        body = example[example.index("int main"):]
        for name in ("README.md", "README.zh.md"):
            self.assertIn(f"```cpp\n{body}```", (ROOT / name).read_text(encoding="utf-8"), name)

    def test_linked_files_exist(self):
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
                self.assertTrue((page.parent / target).exists(), f"{page.name} links to {target}")


if __name__ == "__main__":
    unittest.main()
