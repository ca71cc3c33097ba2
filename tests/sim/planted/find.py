#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that the simulator finds bugs: takes one line out of the product at a time.

Usage: find.py BUILD [--seeds=N] [--jobs=N] [--only=NAME,...]

BUILD is a folder in which `sim` has been built. For each bug the file with one
line less is compiled, with those that the build compiles together with it, and
linked into a simulator of its own, in BUILD/planted. Prints after how many seeds
each was found, and a line of JSON; ends with 1 if one was not.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Name, file, and the line, or the lines of one statement, that are taken out.
BUGS = [
    ("requests_run_twice", "rpc/incoming.cc",
     "  if (!peers_.FirstTime(from.name, call->frame.call)) return;\n"),
    ("no_new_epoch", "rpc/peers.cc",
     "  peer->state = State::kGone;\n  peer->control.Reset();\n",
     "  peer->control.Reset();\n"),
    ("grants_of_the_dead_stay", "rpc/ownership_events.cc",
     "    for (const RRefId& id : touched) CollectLocked(id, actions);\n"),
    ("sent_without_a_grant", "rpc/ownership.cc",
     "        found->second.forks[fork] = {to, Clock::now()};\n"),
    ("handles_die_in_silence", "rpc/ownership_events.cc",
     "      if (found->second.told) {\n"
     "        actions.messages.push_back(\n"
     "            {found->second.owner,\n"
     "             {ControlKind::kDelete, handle.id(), handle.fork()}});\n",
     "        actions.messages.push_back(\n"
     "            {found->second.owner,\n"
     "             {ControlKind::kDelete, handle.id(), handle.fork()}});\n"),
    ("nothing_is_sent_again", "rpc/control_channel.cc",
     "    window_ = kItemsPerFrame;\n    next_ = first_;\n",
     "    next_ = first_;\n"),
    ("gaps_are_not_seen", "rpc/control_channel.cc",
     "  if (frame.first > expected_) return received;\n"),
    ("leases_do_not_begin_anew", "rpc/rendezvous_members.cc",
     "  member->heard = now;\n"),
    ("transfers_are_not_asked_for", "rpc/outgoing.cc",
     "    ownership_->ProbeFrom(forks, Clock::now() + 2 * "
     "options_.resend_after);\n"),
    ("calls_are_not_failed", "rpc/agent_core.cc",
     "void AgentCore::EndAllWith(const WorkerInfo& peer, "
     "const absl::Status& why) {\n  FailCallsTo(peer, why);\n",
     "  FailCallsTo(peer, why);\n"),
]


def without(text, where, line):
    """`text` without `line`, which stands in it once, as a part of `where`."""
    if text.count(where) != 1:
        raise ValueError(f"stands there {text.count(where)} times: {where!r}")
    return text.replace(where, where.replace(line, ""))


def compilation(build, file):
    """The command that compiles `file`, alone or with others, and its source."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for entry in commands:
        if "baton_rpc.dir" not in entry["command"]:
            continue
        source = pathlib.Path(entry["file"])
        if source == ROOT / file:
            return entry, source
        if "/Unity/" in str(source) and f'{file}"' in source.read_text():
            return entry, source
    raise ValueError(f"{build} does not compile {file}")


def linking(build):
    """The command that links `sim`."""
    lines = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", "-s", "bin/sim"],
        check=True, capture_output=True, text=True).stdout
    return re.sub(r"^: && | && :$", "", lines.strip().splitlines()[-1])


def make(build, name, file, where, line):
    """A simulator with that bug."""
    place = build / "planted" / name
    mutated = place / file
    mutated.parent.mkdir(parents=True, exist_ok=True)
    mutated.write_text(without((ROOT / file).read_text(), where, line))
    entry, source = compilation(build, file)
    words = [w for w in shlex.split(entry["command"]) if w != "-c"]
    output = words.index("-o")
    del words[output:output + 2]
    words.remove(str(source))
    batch = source.read_text().replace(f"#include \"{ROOT}/", "#include \"")
    copy = place / "batch.cc"
    copy.write_text(batch if "/Unity/" in str(source) else mutated.read_text())
    compiler = 2 if words[0].endswith("ccache") else 1
    subprocess.run(
        words[:compiler] + [f"-I{place}"] + words[compiler:] +
        ["-c", str(copy), "-o", str(place / "batch.o")],
        check=True, cwd=entry["directory"])
    # Before the library, whose own object of the same names is then not needed.
    words = shlex.split(linking(build))
    output = words.index("-o")
    words[output + 1] = str(place / "sim")
    words.insert(output, str(place / "batch.o"))
    subprocess.run(words, check=True, cwd=build)
    return place / "sim"


def main():
    """Plants each bug and looks for it."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    flags = parser.parse_args()
    build = flags.build.resolve()
    found = {}
    for name, file, where, *line in BUGS:
        if flags.only and name not in flags.only.split(","):
            continue
        simulator = make(build, name, file, where, (line or [where])[0])
        run = subprocess.run(
            [simulator, f"--seeds={flags.seeds}", f"--jobs={flags.jobs}",
             "--noshrink"], check=False, capture_output=True, text=True)
        last = json.loads(run.stdout.strip().splitlines()[-1])
        why = re.search(r"^WRONG.*", run.stdout, re.M)
        if run.returncode == 1 and why:
            found[name] = last["seeds"]
            print(f"{name}: after {last['seeds']} seeds: {why.group()[:150]}",
                  flush=True)
        else:
            found[name] = None
            print(f"{name}: NOT FOUND in {last['seeds']} seeds", flush=True)
    missing = [name for name, seeds in found.items() if seeds is None]
    print(json.dumps({"what": "planted", "bugs": len(found),
                      "found": len(found) - len(missing), "seeds": found}))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
