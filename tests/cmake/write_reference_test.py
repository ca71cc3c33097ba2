# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""cmake/write_reference.py finds what the page of headers has wrong."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import write_reference  # noqa: E402

PAGE = """\
| header | what |
| --- | --- |
| [core/tensor.h](../../core/tensor.h) | `Tensor`; `shape.h` has its extents |
| [core/ops](../../core/ops) | one header for each family, such as `reduce.h` |
"""
INSTALLED = {"core/tensor.h", "core/shape.h", "core/log.h", "core/ops/reduce.h",
             "core/ops/arithmetic.h"}


def look(page, included=()):
    return write_reference.check_headers(
        page, INSTALLED, {header: "a.cc" for header in included})


class CheckHeaders(unittest.TestCase):

    def test_accepts_headers_that_are_listed_or_named_or_in_a_listed_folder(self):
        self.assertEqual([], look(
            PAGE, ["core/tensor.h", "core/shape.h", "core/ops/arithmetic.h"]))

    def test_finds_a_header_that_programs_include_and_the_page_omits(self):
        self.assertEqual(["docs/reference/headers.md lacks core/log.h, which a.cc "
                          "includes"], look(PAGE, ["core/log.h", "core/shape.h"]))
        self.assertIn("lacks core/tensor.h",
                      look(PAGE.replace("core/tensor.h", "core/log.h"),
                           ["core/tensor.h"])[0])

    def test_finds_a_header_that_is_there_for_other_projects_and_the_page_omits(self):
        self.assertEqual(["docs/reference/headers.md lacks core/log.h, which nothing "
                          "of Baton includes"], write_reference.check_headers(
                              PAGE, INSTALLED, {}, {"core/log.h", "core/shape.h"}))
        unused = write_reference.unused_headers(
            {"core/tensor.h", "models/lenet.h"})
        self.assertEqual({"models/lenet.h"}, unused)

    def test_finds_a_header_that_is_not_installed(self):
        self.assertIn("has core/gone.h, which is not installed",
                      look(PAGE.replace("shape.h", "gone.h"))[0])
        self.assertIn("has core/cuda, which is not installed",
                      look(PAGE.replace("core/ops", "core/cuda"))[0])

    def test_finds_a_header_that_is_listed_twice(self):
        again = "| [core/shape.h](../../core/shape.h) | `Shape` |\n"
        self.assertEqual(["docs/reference/headers.md has core/shape.h twice"],
                         look(PAGE + again))

    def test_the_page_omits_no_header_of_the_examples(self):
        page = write_reference.HEADERS.read_text()
        included = write_reference.headers_included()
        self.assertIn("models/distributed/join.h", included)
        installed = {*included, *write_reference.listed_headers(page)}
        self.assertEqual([], write_reference.check_headers(page, installed, included))
        planted = page.replace("[rpc/spares.h]", "[rpc/moved.h]").replace(
            "[models/distributed/join.h]", "[models/distributed/moved.h]")
        self.assertIn("lacks models/distributed/join.h", "\n".join(
            write_reference.check_headers(planted, installed, included)))


if __name__ == "__main__":
    unittest.main()
