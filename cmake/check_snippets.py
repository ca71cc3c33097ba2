#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares code in documents with the files that it is cut from, and their links
and the names of files and tests with what there is.

Usage: check_snippets.py [--write] [ROOT]

A block of code below a line

    <!-- examples/toy_model.cc: train -->

is what stands in that file between a line "// [train]" (or "# [train]") and the
next "// [end]", without the indentation that all of it has. --write copies it
into the document. Every block of C++ must be such a one, so that what documents show
is built and run. A link to a file of the project must lead to one, and its
#anchor to a heading there. A node of a mermaid chart whose text is a path, or several
with <br> between them, must name files. So must a path in backticks that begins with a
folder of the project; "x.h" and "x_test.cc" stand for any, and the changelog may name
what was. In a table of tests `Suite.Name`, or `.Name` of the suite before, must be one.
Prints one line for each that does not, and ends with 1 if there was any.
"""

import pathlib
import re
import sys
import textwrap

CUT = re.compile(r"^[ \t]*(?://|#) \[{}\]\n(.*?)^[ \t]*(?://|#) \[end\]$")
BLOCK = re.compile(r"^<!-- (\S+): (\w+) -->\n```(\w*)\n(.*?)^```$", re.M | re.S)
MARK = re.compile(r"^<!-- \S+: \w+ -->$", re.M)
CPP = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*(?:cpp|c\+\+|cxx|cc|cu|cuda|h|hpp)(?!\S)",
                 re.M | re.I)
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
CHART = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
NODE = re.compile(r"\w\[([^\]]*)\]")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(
    r"(?<![\w./-])(?:baton/)?((?:autograd|cmake|core|deploy|docs|examples|models|optim|rpc|"
    r"tests|tools)/[\w./*-]+\.(?:bash|cc|cmake|cu|h|md|proto|py|sh|txt))(?!\w)")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


def cut(root, name, part):
    """The part of a file, or None where it has none or several."""
    path = root / name
    if not path.is_file():
        return None
    found = re.findall(CUT.pattern.format(re.escape(part)), path.read_text(),
                       re.M | re.S)
    return textwrap.dedent(found[0]) if len(found) == 1 else None


def anchors(text):
    """What GitHub makes of a document's headings."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", t))
            .strip().lower().replace(" ", "-") for t in titles}


def check_snippets(root, name, text):
    """What is wrong with the blocks of document `name`, and its text with the
    blocks as they should be."""
    wrong = []

    def fresh(match):
        source, part, language, code = match.groups()
        wanted = cut(root, source, part)
        if wanted is None:
            wrong.append(f"{name}: {source} has no part [{part}], or several")
        elif wanted != code:
            wrong.append(f"{name}: a block is not part [{part}] of {source}; "
                         "run cmake/check_snippets.py --write")
            return f"<!-- {source}: {part} -->\n```{language}\n{wanted}```"
        return match.group()

    made = BLOCK.sub(fresh, text)
    if len(MARK.findall(text)) != len(BLOCK.findall(text)):
        wrong.append(f"{name}: a line '<!-- FILE: PART -->' has no block below it")
    return wrong, made


def check_cpp(name, text):
    """Blocks of C++ that are cut from no file."""
    rest = BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text)
    for fence in CPP.finditer(rest):
        line = rest.count("\n", 0, fence.start()) + 1
        yield (f"{name}:{line}: C++ that is cut from no file; "
               "put it into a test and name it by '<!-- FILE: PART -->'")


def check_links(root, name, text):
    for target in LINK.findall(FENCED.sub("", text)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (root / name).parent / path if path else root / name
        if not file.exists():
            yield f"{name}: there is no {target}"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"{name}: {target} has no such heading"


def check_charts(root, name, text):
    for chart in CHART.findall(text):
        for label in NODE.findall(chart):
            for path in label.split("<br>"):
                if re.fullmatch(r"[\w./-]+/[\w.-]+\.\w+", path) and not (
                        root / path).is_file():
                    yield f"{name}: a chart names {path}, which is not there"


def check_paths(root, name, text):
    if name == "CHANGELOG.md":
        return
    for quoted in QUOTED.findall(FENCED.sub("", text)):
        for path in PATH.findall(quoted):
            if not re.match(r"x[._]", path.rpartition("/")[2]) and not any(
                    root.glob(path)):
                yield f"{name}: there is no {path}"


def tests(root):
    """{suite: the names of its tests}."""
    found = {}
    for path in (root / "tests").rglob("*"):
        if path.suffix in (".cc", ".h"):
            for suite, test in TEST.findall(path.read_text()):
                found.setdefault(suite, set()).add(test)
    for path in (root / "tests").rglob("compile_fail/*.cc"):
        found.setdefault("CompileFail", set()).add(path.stem)
    return found


def check_tests(name, text, known):
    """Compares the tests that a page about them names with {suite: tests}."""
    suite = ""
    for named, test in re.findall(r"`([A-Z]\w*)?\*?\.([\w*]+)`", text):
        suite = named or suite
        if suite not in known or test not in known[suite] | {"*"}:
            yield f"{name}: there is no test {suite}.{test}"


def documents(root):
    folders = [root / "docs", root / "tests", root / "examples", root / "deploy",
               root / "tools"]
    return sorted(root.glob("*.md")) + sorted(
        path for folder in folders for path in folder.rglob("*.md"))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    root = pathlib.Path(arguments[0] if arguments else
                        pathlib.Path(__file__).parent.parent).resolve()
    wrong = []
    for path in documents(root):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        differs, made = check_snippets(root, name, text)
        if "--write" in sys.argv[1:] and made != text:
            path.write_text(made)
            differs, _ = check_snippets(root, name, made)
        wrong += differs + list(check_cpp(name, text))
        wrong += check_links(root, name, text)
        wrong += check_charts(root, name, text)
        wrong += check_paths(root, name, text)
        if name == "docs/tests_from_pytorch.md":
            wrong += check_tests(name, text, tests(root))
    print("\n".join(wrong) or "documents have the code that they show")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
