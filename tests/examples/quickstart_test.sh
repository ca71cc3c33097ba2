#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/examples/quickstart_test.sh PRESET
# examples/quickstart.sh --quick prints its table and writes the results and the
# charts that it promises.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
preset=${1:?usage: tests/examples/quickstart_test.sh PRESET}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

rm -rf build/quickstart
examples/quickstart.sh --preset "$preset" --quick | tee "$log"
python3 - "$log" build/quickstart <<'END'
import json, math, pathlib, sys

table = pathlib.Path(sys.argv[1]).read_text()
folder = pathlib.Path(sys.argv[2])
lines = [json.loads(line)
         for line in (folder / "results.jsonl").read_text().splitlines()]
variants = [line["variant"] for line in lines]
assert variants == ["single", "split", "pipelined 10"], variants
for line in lines:
    assert line["images_per_s"] > 0 and line["median_s"] > 0, line
    assert math.isfinite(line["loss"]) and line["loss"] > 0, line
    assert f"{line['variant']} " in table, (line["variant"], table)
# Two workers compute what one computes.
assert lines[0]["loss"] == lines[1]["loss"], lines
charts = [path for path in folder.iterdir() if path.suffix != ".jsonl"]
assert charts, "no chart was written"
assert all(chart.stat().st_size > 1000 for chart in charts), charts
print("quickstart: the table, three results and", len(charts), "charts are there")
END
