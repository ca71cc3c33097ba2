#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes README's table of figures, the commands behind it, and its chart, from
docs/performance/results.json.

Usage: write_results.py [--check] [ROOT]

--check writes nothing, and ends with 1 where a file is not what would be written, or
where an entry's ratio is not that of its figures, or it names no heading of a page.
"""

import html
import json
import pathlib
import sys

import check_snippets

FOLDER = "docs/performance"
CHART = f"{FOLDER}/results.svg"
BEGIN, END = "<!-- from docs/performance/results.json -->\n", "<!-- until here -->\n"
FIELDS = {"what", "unit", "baton", "peer", "beside", "ratio", "command", "page"}


def number(text):
    return float(text.replace(",", ""))


def check_entry(root, entry):
    """What is wrong with an entry of results.json."""
    missing = FIELDS - entry.keys()
    if missing:
        yield f"{entry.get('what')}: no {', '.join(sorted(missing))}"
        return
    if "measured" in entry:
        yield (f"{entry['what']}: of commit {entry['measured']['commit']}, and the "
               "other rows are not; tests/bench/peers/measure_results.py measures them")
    better, worse = number(entry["baton"]), number(entry["beside"])
    if entry.get("lower_is_better"):
        better, worse = worse, better
    decimals = len(str(entry["ratio"]).partition(".")[2])
    if abs(better / worse - entry["ratio"]) > 0.51 * 10**-decimals:
        yield f"{entry['what']}: the ratio is {better / worse:.3f}"
    name, _, heading = entry["page"].partition("#")
    page = root / FOLDER / name
    text = page.read_text() if page.is_file() else ""
    if heading not in check_snippets.anchors(text):
        yield f"{entry['what']}: {FOLDER} has no {entry['page']}"


def table(results):
    """For the front page."""
    rows = ["| what | Baton | beside it | times as fast |",
            "| --- | --- | --- | --- |"]
    for entry in results["rows"]:
        rows.append(
            f"| [{entry['what']}]({FOLDER}/{entry['page']}) "
            f"| {entry['baton']} {entry['unit']} "
            f"| {entry['peer']}: {entry['beside']} | {entry['ratio']:g} |")
    rows += ["", f"Measured on {results['machine']}, {results['date']}, commit "
             f"`{results['commit']}`."]
    return "\n".join(rows) + "\n"


def commands(results):
    """For the page of performance."""
    rows = ["| what | commands: ours, the peer's |", "| --- | --- |"]
    for entry in results["rows"]:
        both = [entry[name] for name in ("command", "peer_command") if name in entry]
        rows.append(f"| {entry['what']} | " +
                    "<br>".join(f"`{command}`" for command in both) + " |")
    return "\n".join(rows) + "\n"


def chart(results):
    """Bars of the ratios, each with its names and figures; 1 is the peer."""
    label, width, row = 430, 330, 26
    most = max(entry["ratio"] for entry in results)
    height = row * len(results) + 40
    one = label + width / most
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {label + width + 60} '
        f'{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{label + width + 60}" height="{height}" fill="#ffffff"/>',
        f'<text x="{label}" y="18" font-weight="bold">times as fast as what stands '
        "beside it</text>"]
    for i, entry in enumerate(results):
        y = 32 + i * row
        length = entry["ratio"] * width / most
        lines += [
            f'<text x="{label - 8}" y="{y + 13}" text-anchor="end">'
            f"{html.escape(entry['what'])}</text>",
            f'<rect x="{label}" y="{y}" width="{length:.1f}" height="18" '
            'fill="#2f6f9f"/>',
            f'<text x="{label + length + 5:.1f}" y="{y + 13}">{entry["ratio"]:g}'
            "</text>"]
    lines += [f'<line x1="{one:.1f}" y1="26" x2="{one:.1f}" y2="{height - 6}" '
              'stroke="#b03030" stroke-dasharray="4 3"/>', "</svg>"]
    return "\n".join(lines) + "\n"


def with_table(path, made):
    """The page's text with the table between its marks."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no lines '{BEGIN.strip()}' and "
                         f"'{END.strip()}'")
    return before + begin + made + end + after


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(arguments[0] if arguments else
                        pathlib.Path(__file__).parent.parent).resolve()
    results = json.loads((root / FOLDER / "results.json").read_text())
    wrong = [line for entry in results["rows"]
             for line in check_entry(root, entry)]
    if not wrong:
        front, page = root / "README.md", root / FOLDER / "README.md"
        wanted = {front: with_table(front, table(results)),
                  page: with_table(page, commands(results)),
                  root / CHART: chart(results["rows"])}
        for path, text in wanted.items():
            if "--check" not in sys.argv[1:]:
                path.write_text(text)
            elif not path.is_file() or path.read_text() != text:
                wrong.append(f"{path.relative_to(root)} is not what results.json "
                             "makes; run cmake/write_results.py")
    print("\n".join(wrong) or "README has the figures of results.json")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
