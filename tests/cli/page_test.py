"""The pages in a browser: what their scripts build is there, and nothing was refused or thrown."""
import re
import shutil
import subprocess
import unittest

from program import SMALL, ProgramTest, main

browser = shutil.which("chromium")


@unittest.skipUnless(browser, "needs chromium")
class Pages(ProgramTest):
    def dom(self, page):
        """The page's elements after its scripts ran."""
        result = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.folder / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=5000",
             "--dump-dom", page.as_uri()], capture_output=True, timeout=120, check=False)
        said = [line for line in result.stderr.decode("utf-8", "replace").splitlines() if "CONSOLE" in line]
        self.assertEqual(said, [])
        return result.stdout.decode()

    def test_attention(self):
        for text, tokens in (("good fine word1", ["good", "fine", "word1"]), ("这只猫", ["这", "只", "猫"])):
            page = self.folder / "attention.html"
            self.ok("show", self.run_directory, text, "--format", "html", "--out", page)
            dom = self.dom(page)
            chips = re.findall(r'<button type="button" class="chip[^>]*>([^<]*)<', dom)
            self.assertEqual(chips, tokens)
            self.assertEqual(len(re.findall(r'<button[^>]* class="thumb', dom)), 2)  # one layer of two heads

    def test_an_error_in_a_script_is_seen(self):
        page = self.folder / "attention.html"
        self.ok("show", self.run_directory, "good", "--format", "html", "--out", page)
        page.write_text(page.read_text().replace('"layers":1', '"layers":null'))
        with self.assertRaises(AssertionError):
            self.dom(page)

    def test_comparison(self):
        out = self.folder / "grid"
        self.ok("compare", "--data", self.data, "--out", out, *SMALL, "--heads", "1,2", "--seeds", "2")
        dom = self.dom(out / "report.html")
        self.assertEqual(dom.count("<figure>"), 4)
        self.assertTrue("heads = 1, 2  # varied" in dom)
        self.assertTrue("words + bigrams" in dom)


if __name__ == "__main__":
    main()
