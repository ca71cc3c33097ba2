#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws throughput over time, with the faults, of a training.

  recovery_bench --what=faults >faults.json
  recovery_bench --what=faults --period_s=1e6 >undisturbed.json
  tests/bench/draw_faults.py faults.svg faults.json [undisturbed.json]

Throughput is compared with that of an undisturbed run of the same training, whose
loss is drawn over that of the run with faults; without one, with the throughput
between the faults. Prints what each kind of fault has cost: the time in which as
many rows as are missing would have been trained at that throughput.
"""

import json
import sys
from collections import defaultdict

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 900, 220, 60, 40, 24
LOSSES_HEIGHT = 160  # of the second picture, below
WINDOW_S = 5  # throughput is that of so many seconds
SETTLED_S = 10  # after a fault, until the training is as if there had been none
# Of the kinds of faults, in the order in which they come.
COLOURS = ("#b03030", "#c08020", "#7040a0", "#208080", "#806040", "#606060")


def steps_of(lines):
    """(second, rows so far) of each step."""
    return [(0.0, 0)] + [(line["at"], line["rows"]) for line in lines
                         if "rows" in line]


def rows_at(steps, second):
    """Rows so far: a step's rows come evenly while it lasts."""
    before = steps[0]
    for step in steps:
        if step[0] >= second:
            share = (second - before[0]) / max(step[0] - before[0], 1e-9)
            return before[1] + share * (step[1] - before[1])
        before = step
    return steps[-1][1]


def throughput(steps):
    """(second, rows a second) of each window."""
    last = int(steps[-1][0]) - int(steps[-1][0]) % WINDOW_S
    return [(at, (rows_at(steps, at + WINDOW_S) - rows_at(steps, at)) / WINDOW_S)
            for at in range(0, last, WINDOW_S)]


def undisturbed_rate(steps, faults):
    """Rows a second, of the time in which no fault tells any more."""
    ends = [fault["at"] for fault in faults] + [steps[-1][0]]
    begins = [0] + [fault["at"] + SETTLED_S for fault in faults]
    spans = [(begin, end) for begin, end in zip(begins, ends) if end > begin]
    rows = sum(rows_at(steps, end) - rows_at(steps, begin)
               for begin, end in spans)
    return rows / sum(end - begin for begin, end in spans)


def costs(steps, faults, rate):
    """Seconds that were lost by each fault, by its kind."""
    lost = defaultdict(list)
    for fault in faults:
        end = min(fault["at"] + SETTLED_S, steps[-1][0])
        rows = rows_at(steps, end) - rows_at(steps, fault["at"])
        lost[fault["fault"]].append(end - fault["at"] - rows / rate)
    return lost


def colours_of(faults):
    kinds = list(dict.fromkeys(fault["fault"] for fault in faults))
    return {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)}


def path(points, x, y):
    return " ".join(f"{'L' if i else 'M'}{x(at):.1f} {y(rate):.1f}"
                    for i, (at, rate) in enumerate(points))


def losses_of(lines):
    """The loss of each step, in order."""
    return [line["loss"] for line in lines if "loss" in line]


def draw_losses(losses, undisturbed):
    """The losses of both runs, by step: one dashed, over the other."""
    end, most = len(losses), max(losses)
    x = lambda step: LEFT + step / end * (WIDTH - LEFT - 10)
    y = lambda loss: HEIGHT + TOP + (1 - loss / most) * (
        LOSSES_HEIGHT - TOP - BOTTOM)
    svg = []
    for each, style in ((losses, 'stroke="#e0a080" stroke-width="4"'),
                        (undisturbed[:end],
                         'stroke="#204060" stroke-dasharray="3 3"')):
        svg.append(f'<path d="{path(list(enumerate(each)), x, y)}" fill="none" '
                   f'{style}/>')
    base = HEIGHT + LOSSES_HEIGHT - BOTTOM
    for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        svg.append(f'<text x="{LEFT - 6}" y="{y(part * most) + 4:.1f}" '
                   f'text-anchor="end">{part * most:.1f}</text>')
        svg.append(f'<text x="{x(part * end):.1f}" y="{base + 16}" '
                   f'text-anchor="{anchor}">step {part * end:.0f}</text>')
    svg.append(f'<text x="{LEFT}" y="{HEIGHT + 14}" fill="#c06040">loss with '
               f'faults</text><text x="{LEFT + 130}" y="{HEIGHT + 14}" '
               'fill="#204060">loss without (dashed)</text>')
    return svg


def draw(steps, faults, rate, kept, rate_name, losses_svg):
    height = HEIGHT + (LOSSES_HEIGHT if losses_svg else 0)
    end = steps[-1][0]
    most = 1.15 * max(each for _, each in throughput(steps))
    x = lambda at: LEFT + at / end * (WIDTH - LEFT - 10)
    y = lambda each: HEIGHT - BOTTOM - each / most * (HEIGHT - BOTTOM - TOP)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
           ' font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>'] + losses_svg
    colours = colours_of(faults)
    for fault in faults:
        at, colour = x(fault["at"]), colours[fault["fault"]]
        svg.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" '
                   f'y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
                   'stroke-dasharray="2 3"/>')
    svg.append(f'<path d="{path(throughput(steps), x, y)}" fill="none" '
               'stroke="#2060a0" stroke-width="1.5"/>')
    svg.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(rate):.1f}" '
               f'y2="{y(rate):.1f}" stroke="#308030"/>')
    for minute in range(int(end // 60) + 1):
        svg.append(f'<text x="{x(60 * minute):.1f}" y="{HEIGHT - BOTTOM + 16}" '
                   f'text-anchor="middle">{minute} min</text>')
    for part in (0, 0.5, 1):
        svg.append(f'<text x="{LEFT - 6}" y="{y(part * rate) + 4:.1f}" '
                   f'text-anchor="end">{part * rate:.0f}/s</text>')
    at = LEFT
    for text, colour in [("rows a second", "#2060a0"),
                         (rate_name, "#308030")] + list(colours.items()):
        svg.append(f'<text x="{at}" y="14" fill="{colour}">{text}</text>')
        at += 7 * len(text) + 14
    svg.append(f'<text x="{WIDTH - 10}" y="14" text-anchor="end">'
               f'{100 * kept:.1f} % kept</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def compare_losses(losses, undisturbed):
    """Says in how many steps two runs of a training have another loss."""
    both = min(len(losses), len(undisturbed))
    other = sum(a != b for a, b in zip(losses, undisturbed))
    print(f"losses: {other} of {both} steps have another one than undisturbed; "
          f"the first is {losses[0]:.4g}, the last {losses[both - 1]:.4g}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    lines = read(sys.argv[2])
    faults = [line for line in lines if "fault" in line]
    steps = steps_of(lines)
    rate, rate_name = undisturbed_rate(steps, faults), "between faults"
    losses_svg = []
    if len(sys.argv) > 3:
        undisturbed = read(sys.argv[3])
        end = steps_of(undisturbed)[-1]
        rate, rate_name = end[1] / end[0], "undisturbed"
        both = losses_of(lines), losses_of(undisturbed)
        if not all(both):
            sys.exit("a run has no losses: make both with this recovery_bench")
        compare_losses(*both)
        losses_svg = draw_losses(*both)
    kept = steps[-1][1] / steps[-1][0] / rate
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw(steps, faults, rate, kept, rate_name, losses_svg))
    for kind, lost in sorted(costs(steps, faults, rate).items()):
        lost.sort()
        print(f"{kind}: {len(lost)} times, median {lost[len(lost) // 2]:.2f} s, "
              f"most {lost[-1]:.2f} s")
    print(f"{rate_name}: {rate:.1f} rows/s; kept: {100 * kept:.1f} %")


if __name__ == "__main__":
    main()
