# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""cmake/write_results.py shows what results.json says, and finds what cannot be."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "# Speed\n\n## One GPU\n\nWhy.\n"
README = ("# Name\n\n<!-- from docs/performance/results.json -->\nold\n<!-- until here -->\n\nmore\n")
ENTRY = {"what": "A step", "unit": "images/s", "baton": "1,200", "peer": "Peer 1.0",
         "beside": "1,000.5", "ratio": 1.20, "command": "bench --fast",
         "peer_command": "peer.py", "page": "page.md#one-gpu"}
RESULTS = {"machine": "one GPU", "date": "2026-11-22", "commit": "abc1234"}


class WriteResults(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.folder = self.root / "docs/performance"
        self.folder.mkdir(parents=True)
        (self.folder / "page.md").write_text(PAGE)
        for folder in (self.root, self.folder):
            (folder / "README.md").write_text(README)

    def run_with(self, *flags, **changes):
        """Its exit code and what it said, with an entry that is changed so."""
        (self.folder / "results.json").write_text(
            json.dumps(RESULTS | {"rows": [ENTRY | changes]}))
        done = subprocess.run(
            [sys.executable, ROOT / "cmake/write_results.py", *flags, self.root],
            capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_writes_the_table_between_the_marks_and_the_chart(self):
        self.assertEqual(0, self.run_with()[0])
        text = (self.root / "README.md").read_text()
        self.assertIn("| [A step](docs/performance/page.md#one-gpu) | 1,200 images/s "
                      "| Peer 1.0: 1,000.5 | 1.2 |", text)
        self.assertIn("one GPU, 2026-11-22, commit `abc1234`", text)
        self.assertNotIn("old", text)
        self.assertIn("more", text)
        self.assertIn("| A step | `bench --fast`<br>`peer.py` |",
                      (self.folder / "README.md").read_text())
        self.assertIn("A step", (self.folder / "results.svg").read_text())
        self.assertEqual(0, self.run_with("--check")[0])

    def test_check_refuses_another_table_or_chart(self):
        self.assertEqual(0, self.run_with()[0])
        code, said = self.run_with("--check", what="Another step")
        self.assertEqual(1, code)
        self.assertIn("README.md is not what results.json makes", said)
        self.assertIn("results.svg is not", said)

    def test_refuses_a_page_or_heading_that_is_not_there(self):
        for page in ("page.md#two", "no.md#one-gpu"):
            self.assertIn(f"has no {page}", self.run_with(page=page)[1])

    def test_refuses_a_ratio_that_is_not_that_of_the_figures(self):
        self.assertIn("the ratio is", self.run_with(ratio=1.25)[1])
        self.assertIn("the ratio is", self.run_with(lower_is_better=True)[1])
        self.assertEqual(0, self.run_with(ratio=0.83, lower_is_better=True)[0])


if __name__ == "__main__":
    unittest.main()
