# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/peers/measure_results.py writes what commands say, and nothing where one
of them does not say it."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRY = {"what": "A step", "unit": "images/s", "baton": "1", "peer": "Peer 1.0",
         "beside": "2", "ratio": 0.5,
         "command": """echo '{"variant": "a", "per_s": 1500.5}'""",
         "figure": {"where": {"variant": "a"}, "key": "per_s"},
         "peer_command": """echo '{"variant": "b", "per_s": 1000}'""",
         "peer_figure": {"where": {"variant": "b"}, "key": "per_s"}}


class MeasureResults(unittest.TestCase):

    def measured(self, *flags, drop=(), **changes):
        """Its exit code, and the file that it was given with these changes."""
        entry = ENTRY | changes
        for name in drop:
            del entry[name]
        before = {"machine": "old", "date": "2026-11-22", "commit": "abc1234",
                  "rows": [entry]}
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.json"
            results.write_text(json.dumps(before))
            done = subprocess.run(
                [sys.executable, ROOT / "tests/bench/peers/measure_results.py", folder,
                 "--machine=new", "--commit=def5678", f"--results={results}", *flags],
                capture_output=True, text=True, check=False)
            return done.returncode, before, json.loads(results.read_text())

    def test_writes_figures_ratio_and_where_they_are_from(self):
        code, _, after = self.measured()
        self.assertEqual(0, code)
        self.assertEqual(("new", "def5678"), (after["machine"], after["commit"]))
        self.assertEqual(("1,500", "1,000", 1.5),
                         tuple(after["rows"][0][name] for name in
                               ("baton", "beside", "ratio")))

    def test_less_is_better_where_it_is(self):
        self.assertEqual(0.67, self.measured(lower_is_better=True)[2]["rows"][0]["ratio"])

    def test_takes_both_from_one_output(self):
        both = """printf '{"variant": "a", "per_s": 3}\\n{"variant": "b", "per_s": 2}\\n'"""
        after = self.measured(drop=["peer_command"], command=both)[2]
        self.assertEqual(1.5, after["rows"][0]["ratio"])

    def test_writes_nothing_where_a_command_fails_or_says_nothing(self):
        for changes in ({"command": "false"}, {"command": "echo nothing"},
                        {"command": "no-such-program"}, {"gpus": 99}):
            code, before, after = self.measured(**changes)
            self.assertEqual(1, code)
            self.assertEqual(before, after)

    def test_writes_nothing_where_some_rows_are_asked_for(self):
        code, before, after = self.measured("--only=step")
        self.assertEqual(0, code)
        self.assertEqual(before, after)


if __name__ == "__main__":
    unittest.main()
