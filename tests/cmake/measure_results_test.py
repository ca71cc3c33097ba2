# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/peers/measure_results.py writes what commands say, row by row, and does not
say that rows of several commits are of one."""

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

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name) / "results.json"

    def begin_with(self, *rows):
        before = {"machine": "old", "date": "2026-11-22", "commit": "abc1234",
                  "rows": list(rows)}
        self.results.write_text(json.dumps(before))
        return before

    def measure(self, *flags):
        """Its exit code, what it complained of, and the file that it left."""
        done = subprocess.run(
            [sys.executable, ROOT / "tests/bench/peers/measure_results.py",
             self.results.parent, "--machine=new", "--commit=def5678",
             f"--results={self.results}", *flags],
            capture_output=True, text=True, check=False)
        return done.returncode, done.stderr, json.loads(self.results.read_text())

    def measured(self, *flags, drop=(), **changes):
        """Its exit code, and the file that it was given with these changes."""
        entry = ENTRY | changes
        for name in drop:
            del entry[name]
        before = self.begin_with(entry)
        code, _, after = self.measure(*flags)
        return code, before, after

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

    def test_goes_on_with_the_rows_that_an_ended_run_has_left(self):
        broken = ENTRY | {"what": "A call", "command": "false"}
        self.begin_with(ENTRY, broken)
        code, said, after = self.measure()
        self.assertEqual(1, code)
        self.assertIn("A call: still of abc1234 on old", said)
        self.assertEqual(("old", "abc1234"), (after["machine"], after["commit"]))
        self.assertEqual({"machine": "new", "commit": "def5678"},
                         {name: after["rows"][0]["measured"][name]
                          for name in ("machine", "commit")})
        self.assertEqual(broken, after["rows"][1])

        after["rows"][0]["command"] = "false"  # is not run again
        after["rows"][1]["command"] = ENTRY["command"]
        self.results.write_text(json.dumps(after))
        code, said, after = self.measure()
        self.assertEqual((0, ""), (code, said))
        self.assertEqual(("new", "def5678"), (after["machine"], after["commit"]))
        self.assertNotEqual("2026-11-22", after["date"])
        for row in after["rows"]:
            self.assertNotIn("measured", row)
            self.assertEqual("1,500", row["baton"])

    def test_only_measures_the_rows_that_are_asked_for(self):
        rows = [ENTRY | {"what": what} for what in ("A, b", "A, c", "D")]
        self.begin_with(*rows)
        code, said, after = self.measure("--only=, b", "--only=D")
        self.assertEqual(0, code)
        self.assertIn("A, c: still of abc1234", said)
        self.assertEqual(["1,500", "1", "1,500"],
                         [row["baton"] for row in after["rows"]])
        code, _, again = self.measure("--only=nothing")
        self.assertEqual((1, after), (code, again))

    def test_the_front_page_is_not_made_of_rows_of_several_commits(self):
        sys.path.insert(0, str(ROOT / "cmake"))
        import write_results
        row = ENTRY | {"page": "cpu.md", "measured": {"commit": "def5678"}}
        self.assertIn("of commit def5678",
                      "\n".join(write_results.check_entry(ROOT, row)))


if __name__ == "__main__":
    unittest.main()
