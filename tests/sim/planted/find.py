#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that the simulator finds bugs: takes one line out of the product at a time.

Usage: find.py BUILD [--seeds=N] [--jobs=N] [--only=NAME,...]
       find.py --check

--check only checks that all lines are still where they are expected.
BUILD is a folder in which `sim` has been built. Makes a simulator in BUILD/planted
that leaves out the line with the number BATON_SIM_PLANTED: compiles the files of
these lines anew, with those that the build compiles together with them. Prints after how many seeds and seconds each bug was found,
how many of the seed's faults suffice to find it, and a line of JSON. The exit code
is 1 if a bug was not found, or not with the remaining faults.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Each bug has a name, a file, and the line, or the lines of one statement, to take
# out. If these occur more than once, a longer text that contains them precedes them.
PLAIN_BUGS = [
    ("requests_run_twice", "rpc/peers.cc",
     "  if (said.request.has_value())\n"
     "    observed.again = !peer.seen_.FirstTime(*said.request);\n"),
    ("no_new_epoch", "rpc/peers.cc",
     "  peer->state_ = Peer::State::kGone;\n  peer->control_.Reset();\n",
     "  peer->control_.Reset();\n"),
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
    ("owners_are_lost_in_silence", "rpc/handle.cc",
     "  if (owner == Owner::kIsLost) TellLost(std::move(handlers), why);\n"),
    ("nothing_is_sent_again", "rpc/control_channel.cc",
     "    window_ = kItemsPerFrame;\n    next_ = first_;\n",
     "    next_ = first_;\n"),
    ("gaps_are_not_seen", "rpc/control_channel.cc",
     "  if (frame.first > expected_) return received;\n"),
    ("repeats_are_not_seen", "rpc/control_channel.cc",
     "    if (number++ < expected_) continue;  // has come before\n"),
    ("nobody_sends_again_unasked", "rpc/agent_core.cc",
     "  for (const PeerPtr& peer : due) FlushControl(peer);\n"),
    ("leases_do_not_begin_anew", "rpc/rendezvous_members.cc",
     "  member.heard = now;\n"),
    ("transfers_are_not_asked_for", "rpc/outgoing.cc",
     "    ownership_->ProbeFrom(forks, Clock::now() + 2 * "
     "options_.resend_after);\n"),
    ("calls_are_not_failed", "rpc/membership.cc",
     "void AgentCore::EndAllWith(const PeerPtr& peer, "
     "const absl::Status& why) {\n  FailCallsTo(*peer, why);\n",
     "  FailCallsTo(*peer, why);\n"),
]
# Bugs of commit and recovery, which --pipelines runs.
PIPELINE_BUGS = [
    ("keeps_before_the_last_is_safe", "models/distributed/recovery_steps.cc",
     "  if (!safe_.has_value() || !HasSucceeded(*safe_)) return 0;\n"),
    ("trainers_are_not_fenced", "models/distributed/stage_group.cc",
     "    RETURN_IF_ERROR(task.keeper->Check());\n"),
    ("states_are_not_loaded", "models/distributed/state_keeper.cc",
     "          if (loads) RETURN_IF_ERROR(keeping->state->Load(state));\n"),
    ("steps_are_not_noted", "models/distributed/recovery_journal.cc",
     "  if (last == kept_) return WriteJournal(last);\n"),
]
# Bugs of servers that take over, which --servers runs.
SERVER_BUGS = [
    ("pushes_count_twice", "models/distributed/server/shard.cc",
     "  if (request.sequence <= trainer.sequence) {  // a repeated push\n"
     "    const auto last = last_push_.find(request.trainer);\n"
     "    AfterPush(waiting, last == last_push_.end()\n"
     "                           ? ReadyFuture<void>(absl::OkStatus())\n"
     "                           : last->second);\n"
     "    return;\n"
     "  }\n"),
    ("pulls_are_torn", "models/distributed/server/client_core.cc",
     "        if (self->PullsOneVersion(*trade) && !AreAtOneCut(replies))\n"
     "          return self->PullAgain(trade, routes, replies, deadline);\n"),
    ("backups_do_not_begin", "models/distributed/server/shard_takeover.cc",
     "                self.Begin(*epoch);\n"),
]
BUGS = ([(*bug, "") for bug in PLAIN_BUGS] +
        [(*bug, "--pipelines") for bug in PIPELINE_BUGS] +
        [(*bug, "--servers") for bug in SERVER_BUGS])


LIBRARIES = ("baton_rpc", "baton_models_distributed")
DECLARATION = "extern int baton_sim_planted;\n"
DEFINITION = """#include <cstdlib>
int baton_sim_planted = [] {
  const char* const number = std::getenv("BATON_SIM_PLANTED");
  return number == nullptr ? -1 : std::atoi(number);
}();
"""


def conditional(text, where, line, number):
    """Returns `text` with `line`, a part of `where`, made conditional on the bug."""
    if text.count(where) != 1:
        raise ValueError(f"stands there {text.count(where)} times: {where!r}")
    guarded = f"if (::baton_sim_planted != {number}) {{\n{line}}}\n"
    return text.replace(where, where.replace(line, guarded))


def mutate(place, numbers):
    """Writes the files with these bugs below `place`, and returns their names."""
    texts = {}
    for number in numbers:
        _, file, where, *line, _ = BUGS[number]
        text = texts.get(file) or DECLARATION + (ROOT / file).read_text()
        texts[file] = conditional(text, where, (line or [where])[0], number)
    for file, text in texts.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text)
    return list(texts)


def compilations(build, files):
    """Returns the commands that compile `files`, alone or with others, and what."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not any(f"{library}.dir" in entry["command"]
                   for library in LIBRARIES):
            continue
        source = pathlib.Path(entry["file"])
        unity = "/Unity/" in str(source)
        text = source.read_text() if unity else f'#include "{source}"\n'
        text = text.replace(f'"{ROOT}/', '"')
        if any(f'"{file}"' in text for file in files):
            found[source] = (entry, text)
    return found


def compile_batch(place, entry, source, text):
    """Compiles with the files in `place` instead, and returns the object."""
    batch = place / "_".join(source.parts[-3:])  # libraries number their own
    batch.write_text(text)
    words = [w for w in shlex.split(entry["command"]) if w != "-c"]
    output = words.index("-o")
    del words[output:output + 2]
    words.remove(entry["file"])
    compiler = 2 if words[0].endswith("ccache") else 1
    made = batch.with_suffix(".o")
    subprocess.run(
        words[:compiler] + [f"-I{place}"] + words[compiler:] +
        ["-c", str(batch), "-o", str(made)], check=True, cwd=entry["directory"])
    return made


def linking(build):
    """Returns the command that links `sim`."""
    lines = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", "-s", "bin/sim"],
        check=True, capture_output=True, text=True).stdout
    return re.sub(r"^: && | && :$", "", lines.strip().splitlines()[-1])


def make(build, jobs, numbers):
    """Makes a simulator with these bugs, each of which BATON_SIM_PLANTED enables."""
    place = build / "planted"
    shutil.rmtree(place, ignore_errors=True)
    batches = compilations(build, mutate(place, numbers))
    planted = pathlib.Path("planted.cc")
    batches[planted] = (next(iter(batches.values()))[0], DEFINITION)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(
            lambda item: compile_batch(place, item[1][0], item[0], item[1][1]),
            batches.items()))
    # Comes before the library, so that the linker ignores its objects of the same names.
    words = shlex.split(linking(build))
    output = words.index("-o")
    words[output + 1] = str(place / "sim")
    words[output:output] = map(str, objects)
    subprocess.run(words, check=True, cwd=build)
    return place / "sim"


def find(simulator, number, flags):
    """Looks for a bug; returns after how many seeds it was found, and a text."""
    name, *_, kind = BUGS[number]
    planted = os.environ | {"BATON_SIM_PLANTED": str(number)}
    run = subprocess.run(
        [simulator, f"--seeds={flags.seeds}", f"--jobs={flags.jobs}"] +
        [kind] * bool(kind),
        check=False, capture_output=True, text=True, env=planted)
    last = json.loads(run.stdout.strip().splitlines()[-1])
    why = re.search(r"^WRONG.*", run.stdout, re.M)
    if run.returncode != 1 or not why:
        return None, f"{name}: NOT FOUND in {last['seeds']} seeds"
    smaller = re.search(r"^smaller: sim (.*) --trace$", run.stdout, re.M)
    words = shlex.split(smaller.group(1))
    again = subprocess.run([simulator, *words], check=False,
                           stdout=subprocess.DEVNULL, env=planted)
    if again.returncode != 1:
        return None, f"{name}: NOT FOUND by {smaller.group(1)}"
    return last["seeds"], (
        f"{name}: after {last['seeds']} seeds and {last['seconds']} s, again by "
        f"{smaller.group(1)}: {why.group()[:150]}")


def main():
    """Plants each bug and looks for it."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    flags = parser.parse_args()
    wanted = flags.only.split(",") if flags.only else [b[0] for b in BUGS]
    numbers = [n for n, bug in enumerate(BUGS) if bug[0] in wanted]
    if flags.check:
        with tempfile.TemporaryDirectory() as place:
            mutate(pathlib.Path(place), numbers)
        return 0
    if flags.build is None:
        parser.error("BUILD is missing")
    simulator = make(flags.build.resolve(), flags.jobs, numbers)
    found = {}
    for number in numbers:
        found[BUGS[number][0]], told = find(simulator, number, flags)
        print(told, flush=True)
    missing = [name for name, seeds in found.items() if seeds is None]
    print(json.dumps({"what": "planted", "bugs": len(found),
                      "found": len(found) - len(missing), "seeds": found}))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
