#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reference/programs.md out of what the programs say of themselves.

Usage: write_reference.py BIN [--check]

BIN is the folder of the built programs. With --check nothing is written: ends
with 1, and says what differs, where the page is not what they say today, where
examples/README.md lacks an example, where docs/reference/environment.md lacks a
variable that the sources read, or has one that they do not, where
docs/reference/build.md differs so from CMake's options, or where
docs/reference/headers.md lacks a header that examples and documents include, or one
that is installed and nothing of Baton uses, or has one twice, or one that is not
installed.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/programs.md"
VARIABLES = ROOT / "docs/reference/environment.md"
OPTIONS = ROOT / "docs/reference/build.md"
HEADERS = ROOT / "docs/reference/headers.md"

TOOLS = ["baton-run", "baton-worker", "baton-rendezvous", "batonctl",
         "baton-certs"]
SCRIPTS = ["examples/quickstart.sh", "tests/run.sh", "tools/build.sh",
           "tools/setup.sh", "tools/bundle.sh"]
# Flags that several programs take from one file: listed once.
SHARED = {
    "Joining a cluster": "tools/cluster_flags.cc",
    "Where and how to compute": "tools/compute_flags.cc",
    "Security": "tools/security_flags.cc",
    "Optimizers": "examples/support/optimizer_flags.cc",
    "Saving and resuming": "examples/support/saving_flags.cc",
    "Pipelines": "examples/support/pipeline_settings.cc",
    "Language models": "examples/transformer/language_model.cc",
    "ResNets": "examples/resnet50/settings.cc",
    "Results": "examples/support/findings.cc",
    "TensorBoard": "examples/support/training_log.cc",
    "Traces": "examples/support/trace_flag.cc",
}
INTRODUCTION = """\
# Programs and their flags

This page has what every program prints for `--help`; `cmake/write_reference.py`
writes it, and a test compares. `--flag=value` and `--flag value` are the same. A
switch is set by `--switch` and cleared by `--noswitch`. `-` may stand for `_` in a
flag's name. A program ends with 2 where it was called wrongly and with 1 where it
failed. In bash, `source tools/completion.bash` completes all of this; an installed
Baton does so by itself. [Environment variables](environment.md) have a page of their
own.
"""
FLAG = re.compile(r"^  --(\w+)  (.*?)(?: \[(.*)\])?$")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} --help ended with {done.returncode}: "
                         f"{done.stderr}")
    return done.stdout


def read_help(text):
    """A program's usage, and {flag: (meaning, default)}."""
    usage, _, lines = text.partition("\n\nFlags:\n")
    flags = {}
    for line in lines.splitlines():
        match = FLAG.match(line)
        if match is None:
            raise SystemExit(f"not a line of a flag: '{line}'")
        flags[match[1]] = (match[2], match[3] or "")
    return usage, flags


def anchor(title):
    return re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")


def table(flags):
    rows = [f"| `--{name}` | {meaning.replace('|', chr(92) + '|')} | "
            f"{f'`{default}`' if default else ''} |"
            for name, (meaning, default) in sorted(flags.items())]
    return "\n".join(["| flag | meaning | default |", "| --- | --- | --- |",
                      *rows])


def flags_of(source):
    return re.findall(r"ABSL_FLAG\(\s*[\w:<>]+,\s*(\w+),",
                      (ROOT / source).read_text())


def examples():
    """The programs of examples/CMakeLists.txt, in its order."""
    text = (ROOT / "examples/CMakeLists.txt").read_text()
    names = []
    for loop in re.split(r"(?=^foreach)", text, flags=re.M):
        for name in re.findall(r"add_executable\((\S+)", loop):
            names += (re.match(r"foreach\(program ([^)]*)\)", loop)[1].split()
                      if name == "${program}" else [name])
    return sorted(set(names))


def shared_flags(programs):
    """{title: flags} of SHARED, as most of the programs describe them."""
    shared = {}
    for title, source in SHARED.items():
        names = flags_of(source)
        told = [{f: flags[f] for f in names} for _, flags in programs.values()
                if all(f in flags for f in names)]
        if told:
            shared[title] = max(told, key=told.count)
    return shared


def program_section(name, usage, flags, shared):
    elsewhere = [title for title, common in shared.items()
                 if common.items() <= flags.items()]
    own = {flag: text for flag, text in flags.items()
           if not any(flag in shared[title] for title in elsewhere)}
    text = f"### {name}\n\n```text\n{usage.strip()}\n```\n\n"
    if own:
        text += table(own) + "\n\n"
    if elsewhere:
        links = ", ".join(f"[{t.lower()}](#{anchor(t)})" for t in elsewhere)
        text += f"{'Also' if own else 'It has'} the flags of {links}.\n\n"
    return text


def page(folder):
    sections = {"Tools": TOOLS, "Examples": examples()}
    programs = {name: read_help(run([str(folder / name), "--help"]))
                for names in sections.values() for name in names}
    shared = shared_flags(programs)
    text = INTRODUCTION + "\n"
    for title, names in sections.items():
        text += f"## {title}\n\n"
        for name in names:
            text += program_section(name, *programs[name], shared)
    text += "## Flags that several programs take\n\n"
    for title, flags in shared.items():
        text += f"### {title}\n\n{table(flags)}\n\n"
    text += "## Scripts\n\n"
    for name in SCRIPTS:
        text += f"### {name}\n\n```text\n" \
                f"{run(['bash', str(ROOT / name), '--help']).strip()}\n```\n\n"
    return text.rstrip() + "\n"


def variables_read():
    """{variable: a file that reads it}."""
    found = {}
    for folder in ["autograd", "core", "deploy", "examples", "models", "optim",
                   "rpc", "tests", "tools"]:
        for path in sorted((ROOT / folder).rglob("*")):
            read = r'getenv\("' if folder == "tests" else '"'
            pattern = {
                ".cc": read + r'(BATON_[A-Z_]+)"',
                ".h": r'getenv\("(BATON_[A-Z_]+)"',
                ".py": r'environ\.get\("(BATON_[A-Z_]+)"',
                ".sbatch": r"\$\{(BATON_[A-Z_]+):?-",
                ".sh": r"\$\{(BATON_[A-Z_]+):?-",
            }.get(path.suffix)
            for name in re.findall(pattern, path.read_text()) if pattern else []:
                found.setdefault(name, path.relative_to(ROOT))
    return found


def options_declared():
    """{option of CMake: the file that declares it}."""
    declares = r"^\s*(?:option\((BATON_\w+)|set\((BATON_\w+)[^)]*\bCACHE\b)"
    return {option or variable: path.relative_to(ROOT)
            for path in sorted((ROOT / "cmake").glob("*.cmake"))
            for option, variable in re.findall(declares, path.read_text(), re.M)}


def check_list(page, read):
    """Compares the names in a page's tables with {name: a file that reads it}."""
    listed = set(re.findall(r"^\| `(BATON_[A-Z_]+)`", page.read_text(), re.M))
    wrong = [f"{page.relative_to(ROOT)} lacks {name}, which {path} reads"
             for name, path in read.items() if name not in listed]
    return wrong + [f"{page.relative_to(ROOT)} has {name}, which nothing reads"
                    for name in sorted(listed - set(read))]


def listed_headers(text):
    """The headers, and folders that stand for theirs, of a page's tables. One that
    the words of a row name without a folder is beside that row's."""
    for path, words in re.findall(r"^\| \[([\w/.]+)\]\([^)]*\) \|(.*)$", text, re.M):
        yield path
        folder = path if not path.endswith(".h") else path.rpartition("/")[0]
        yield from (f"{folder}/{name}" for name in re.findall(r"`(\w+\.h)`", words))


def headers_included():
    """{header: a file that shows how programs are written and includes it}."""
    includes = r'^\s*#include "(?:baton/)?((?:autograd|core|models|optim|rpc|tools)/[^"]+)"'
    return {header: path.relative_to(ROOT)
            for folder, kinds in [("examples", "ch"), ("tests/out_of_tree", "ch"),
                                  ("docs", "m")]
            for path in sorted((ROOT / folder).rglob(f"*.[{kinds}]*"))
            for header in re.findall(includes, path.read_text(), re.M)}


def unused_headers(installed):
    """Those that no other file of the libraries includes: they are there for other
    projects alone."""
    used = {header
            for folder in ["autograd", "core", "models", "optim", "rpc", "tools"]
            for path in (ROOT / folder).rglob("*.[ch]*")
            for header in re.findall(r'^\s*#include "([^"]+)"', path.read_text(), re.M)
            if ROOT / header != path.with_suffix(".h")}
    return installed - used


def check_headers(text, installed, included, unused=()):
    """Compares a page's text with the set of installed headers, {header: a file that
    includes it} and those that are there for other projects alone."""
    listed = list(listed_headers(text))
    folders = {header.rpartition("/")[0] for header in installed}
    wrong = [f"has {name} twice" for name in sorted(set(listed))
             if listed.count(name) > 1]
    wrong += [f"has {name}, which is not installed" for name in sorted(set(listed))
              if name not in installed | folders]
    needed = {**{name: "nothing of Baton" for name in unused}, **included}
    wrong += [f"lacks {name}, which {path} includes"
              for name, path in sorted(needed.items())
              if not {name, name.rpartition("/")[0]} & set(listed)]
    return [f"{HEADERS.relative_to(ROOT)} {what}" for what in wrong]


def installed_headers(tree):
    """Those of a build, and of the libraries that it may have been built without."""
    optional = [path.relative_to(ROOT).as_posix()
                for folder in ["models/torch", "tools/mpi"]
                for path in (ROOT / folder).glob("*.h")]
    return {*(tree / "public_headers.txt").read_text().split(), *optional}


def main():
    folder = pathlib.Path(sys.argv[1])
    made = page(folder)
    if "--check" not in sys.argv[2:]:
        PAGE.write_text(made)
        return 0
    installed = installed_headers(folder.parent)
    wrong = (check_list(VARIABLES, variables_read()) +
             check_list(OPTIONS, options_declared()) +
             check_headers(HEADERS.read_text(), installed, headers_included(),
                           unused_headers(installed)))
    index = (ROOT / "examples/README.md").read_text()
    wrong += [f"examples/README.md lacks {name}" for name in examples()
              if f"| [{name}](" not in index]
    if PAGE.read_text() != made:
        wrong.append(f"{PAGE.relative_to(ROOT)} is not what the programs say; "
                     "run cmake/write_reference.py BIN")
    print("\n".join(wrong) or "every flag, variable, option and header is documented")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
