#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares README.md's C++ block with the example that it is cut from.

Usage: check_readme.py [--write]

The block is what stands in the example between the lines "// README: begin"
and "// README: end". --write copies it into README.md.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = "examples/toy_model.cc"
CUT = re.compile(r"^// README: begin\n(.*?)^// README: end$", re.M | re.S)
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.M | re.S)


def main():
    example = CUT.findall((ROOT / EXAMPLE).read_text())
    readme = (ROOT / "README.md").read_text()
    blocks = BLOCK.findall(readme)
    if len(example) != 1 or len(blocks) != 1:
        print(f"README.md has {len(blocks)} C++ blocks and {EXAMPLE} "
              f"{len(example)} marked parts; each should have one")
        return 1
    if "--write" in sys.argv[1:]:
        (ROOT / "README.md").write_text(
            readme.replace(blocks[0], example[0]))
        return 0
    if blocks == example:
        return 0
    print(f"README.md's C++ block is not what {EXAMPLE} has; run "
          "cmake/check_readme.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
