# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""cmake/check_snippets.py finds what a document has wrong."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import check_snippets  # noqa: E402

SOURCE = "before\n  // [part]\n  int x;\n    int y;\n  // [end]\nafter\n"


def look(document, source=SOURCE):
    """What is wrong with a document, and the document as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.cc").write_text(source)
        (root / "d.md").write_text(document)
        wrong, made = check_snippets.check_snippets(root, "d.md", document)
        return wrong + list(check_snippets.check_links(root, "d.md", document)), \
            made


class CheckSnippets(unittest.TestCase):

    def test_accepts_a_block_that_is_the_part_without_its_indentation(self):
        self.assertEqual([], look(
            "<!-- a.cc: part -->\n```cpp\nint x;\n  int y;\n```\n")[0])

    def test_rejects_another_block_and_can_mend_it(self):
        wrong, made = look("<!-- a.cc: part -->\n```cpp\nint z;\n```\n")
        self.assertEqual(1, len(wrong))
        self.assertIn("is not part [part] of a.cc", wrong[0])
        self.assertEqual([], look(made)[0])

    def test_rejects_parts_that_are_not_there_or_twice(self):
        block = "<!-- a.cc: part -->\n```cpp\nint x;\n  int y;\n```\n"
        self.assertIn("has no part", look(block, "nothing\n")[0][0])
        self.assertIn("or several", look(block, SOURCE + SOURCE)[0][0])

    def test_rejects_a_mark_without_a_block(self):
        self.assertIn("no block below", look("<!-- a.cc: part -->\n\ntext\n")[0][0])

    def test_rejects_cpp_that_is_cut_from_no_file(self):
        cut = "<!-- a.cc: part -->\n```cpp\nint x;\n  int y;\n```\n"
        self.assertEqual([], list(check_snippets.check_cpp("d.md", cut)))
        for fence in ("```cpp", "   ```cpp", "```c++", "~~~ cc title=a.cc", "```CPP"):
            wrong = list(check_snippets.check_cpp(
                "d.md", f"{cut}\ntext\n{fence}\nint x;\n"))
            self.assertEqual(1, len(wrong), fence)
            self.assertIn("d.md:8: C++ that is cut from no file", wrong[0])
        other = "```sh\ncpp\n```\n```\ncpp\n```\n```cmake\n```\n"
        self.assertEqual([], list(check_snippets.check_cpp("d.md", other)))

    def test_links_lead_to_files_and_headings(self):
        self.assertEqual([], look(
            "# A `title`, it is\n[a](a.cc) [b](#a-title-it-is) "
            "[c](https://example.com/x#y)\n```\n[d](gone.md)\n```\n")[0])
        self.assertIn("there is no gone.md", look("[a](gone.md)\n")[0][0])
        self.assertIn("no such heading", look("# B\n[a](d.md#c)\n")[0][0])

    def test_quoted_paths_lead_to_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "core").mkdir()
            (root / "core" / "a.h").write_text("")

            def look_at(text, name="d.md"):
                return list(check_snippets.check_paths(root, name, text))

            self.assertEqual([], look_at(
                "`core/a.h`, `#include \"baton/core/a.h\"`, `core/*.h`, `core/x.h`, "
                "`/core/b.h`, `b.h`\n```\n`core/b.h`\n```\n"))
            self.assertEqual(["d.md: there is no core/b.h"], look_at("`core/b.h`"))
            self.assertEqual(["d.md: there is no core/*.cc"], look_at("`core/*.cc`"))
            self.assertEqual([], look_at("`core/b.h`", "CHANGELOG.md"))

    def test_pages_about_tests_name_tests(self):
        known = {"A": {"One"}, "B": {"Two"}}
        self.assertEqual([], list(check_snippets.check_tests(
            "d.md", "`A*.One`, `B.Two`, `.Two`, `B.*`", known)))
        self.assertEqual(
            ["d.md: there is no test A.Two", "d.md: there is no test C.One",
             "d.md: there is no test C.*"],
            list(check_snippets.check_tests("d.md", "`A.One` `.Two` `C.One` `C*.*`",
                                            known)))

    def test_charts_name_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a").mkdir()
            (root / "a" / "b.cc").write_text("")

            def look_at(label):
                chart = f"```mermaid\nflowchart TB\n  x[{label}] --> y\n```\n"
                return list(check_snippets.check_charts(root, "d.md", chart))

            self.assertEqual([], look_at("a/b.cc<br>a/b.cc"))
            self.assertEqual([], look_at("some words"))
            self.assertIn("a/gone.h", look_at("a/b.cc<br>a/gone.h")[0])


if __name__ == "__main__":
    unittest.main()
