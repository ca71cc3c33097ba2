#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls every program wrongly: each ends with 2 and one line that names what is
wrong and what is meant.

Usage: called_wrongly_test.py BIN
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import write_reference  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1))
PROGRAMS = write_reference.TOOLS + write_reference.examples()
TAKES_ANY_WORD = ["baton-certs"]
# The examples that read these flags; all others refuse them.
SAVING = {"parameter_server", "resnet50_pipeline", "resnet50_single_machine",
          "rl", "rnn"}
NOT_STEPPING = {"mixed_device", "toy_model"}
# A cluster to join, at which nobody is: what is wrong must be said before.
CLUSTER = {"BATON_RENDEZVOUS": "127.0.0.1:1", "BATON_WORLD_SIZE": "3",
           "BATON_NAME": "trainer"}
UNUSED_BESIDE = {
    ("parameter_server", "--gradients=lenet"): [
        "--data=x", "--batch=64", "--seed=2", "--report_every=1s",
        "--compression=topk", "--checkpoint_dir=x"],
    ("parameter_server_batch", "--pushes=3"): [
        "--data=x", "--test_data=x", "--test_images=5", "--steps=5",
        "--target_accuracy=0.5", "--batch=64", "--seed=2",
        "--report_every=1s"],
    ("resnet50_ddp", "--pipeline_stages=2"): ["--data=x"],
}
# What these are lacking is said before anything else.
NEEDED = {"lenet_data_parallel": ["--data=x"], "transformer_pipeline": ["--text=x"]}
# What a flag of words is given, and which of them is meant.
WORDS = {
    "baton-worker": {"--log=wraning": "warning", "--dtype=bf61": "bf16"},
    "lenet_data_parallel": {"--data=x --all_reduce=rnig": "ring"},
    "resnet50_ddp": {"--variants=single,dpp": "ddp", "--gradients=fb16": "bf16"},
    "ddp_rpc_hybrid": {"--data=x --variants=ddt": "ddp"},
    "embedding_rows": {"--load=raed": "read", "--load=local-trian": "train"},
    "parameter_server": {"--data=x --mode=bps": "bsp",
                         "--data=x --compression=topc": "topk",
                         "--gradients=lent": "lenet"},
    "rl": {"--inference=batch": "batched"},
    "rnn": {"--data=x --variants=sinlge": "single",
            "--data=x --resume=newest": None},
    "resnet50_pipeline": {"--schedule=1fb1": "1f1b", "--loss=msee": "mse",
                          "--variants=pipeline": "pipelined",
                          "--require_path=window,tpc": "tcp",
                          "--resume=lastest": "latest",
                          "--optimizer=adm": None, "--lr_schedule=cos": None},
    "resnet50_single_machine": {"--graph=onn": "on"},
}

# Each gets an address that is none.
ADDRESSES = {
    "baton-worker": ["--listen=foo", "--rendezvous=foo"],
    "baton-rendezvous": ["--listen=foo"],
    "baton-run": ["--rendezvous_listen=foo -- true",
                  "--rendezvous=foo --nodes=2 -- true"],
    "batonctl": ["--rendezvous=foo status", "--worker=foo status"],
    "toy_model": ["--listen=foo"],
}


def call(program, *args):
    done = subprocess.run([str(BIN / program), *args], text=True, timeout=60,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          check=False, env={**os.environ, **CLUSTER})
    return done.returncode, done.stdout + done.stderr


@functools.cache
def flags_of(program):
    """{flag: (meaning, default)}, as --help says."""
    return write_reference.read_help(call(program, "--help")[1])[1]


class CalledWrongly(unittest.TestCase):
    def says(self, program, args, *texts):
        code, output = call(program, *args)
        with self.subTest(program=program, args=args, output=output):
            self.assertEqual(code, 2)
            self.assertEqual(output.count("\n"), 1)
            self.assertIn(f"{program}: ", output)
            for text in texts:
                self.assertIn(text, output)

    def test_an_unknown_flag_is_named_with_the_one_that_is_meant(self):
        for program in PROGRAMS:
            self.says(program, ["--zzzzzzzz=1"],
                      "unknown flag --zzzzzzzz; see --help")
            flag = max(flags_of(program), key=len)
            swapped = flag[:2] + flag[3] + flag[2] + flag[4:]
            self.says(program, [f"--{swapped}=1"],
                      f"unknown flag --{swapped} (do you mean --{flag}?)")

    def test_a_program_refuses_a_flag_that_it_does_not_use(self):
        examples = set(write_reference.examples())
        machine = ["resnet50_single_machine"]
        for flag, users in {"resume": SAVING, "lr": examples - NOT_STEPPING,
                            "gpus": machine, "threads_per_device": machine,
                            "overlap_trace": machine}.items():
            for program in examples:
                if program in users:
                    self.assertIn(flag, flags_of(program))
                else:
                    self.says(program, [f"--{flag}=1"], f"unknown flag --{flag}")

    def test_a_flag_without_a_use_beside_another_is_refused(self):
        for (program, other), flags in UNUSED_BESIDE.items():
            for flag in flags:
                self.says(program, [other, flag], f"{flag.split('=')[0]} does not "
                          f"go with {other.split('=')[0]}")
        self.says("parameter_server", ["--data=x", "--top_share=0.5"],
                  "--top_share does not go with --compression=none")
        self.says("parameter_server", ["--data=x", "--mode=bsp,async",
                                       "--checkpoint_dir=x"],
                  "--mode must be one with --checkpoint_dir")

    def test_a_value_of_the_wrong_kind_is_named_with_the_right_kind(self):
        kinds = {r"-?\d+": "number", r"true|false": "true or false",
                 r"\d+m?s": "a time, as"}
        seen = set()
        for program in PROGRAMS:
            for pattern, kind in kinds.items():
                for flag, (_, default) in flags_of(program).items():
                    if not re.fullmatch(pattern, default):
                        continue
                    given = f"--{flag}=nonsense"
                    code, output = call(program, given)
                    if "is not a valid value" not in output:
                        continue  # a text whose default looks like this
                    self.assertEqual(code, 2)
                    self.assertIn(f"{given} is not a valid value; give", output)
                    self.assertIn(kind, output)
                    seen.add(kind)
                    break
        self.assertEqual(seen, set(kinds.values()))

    def test_a_number_of_steps_that_makes_none_is_named(self):
        for program in ["mixed_device", "toy_model"]:
            self.says(program, ["--steps=0"],
                      "--steps=0 is too small: give 1 or more")

    def test_a_word_without_a_use_is_named(self):
        for program in PROGRAMS:
            if program not in TAKES_ANY_WORD:
                self.says(program, ["zzzzzzzz"], "'zzzzzzzz'")

    def test_a_wrong_word_of_a_flag_is_named_with_the_one_that_is_meant(self):
        for program, flags in WORDS.items():
            for given, meant in flags.items():
                word = re.split("[=,-]", given)[-1]
                nearest = f"(do you mean {meant}?)" if meant else ""
                self.says(program, given.split(), f"'{word}'", nearest)

    def test_a_file_that_cannot_be_written_is_named_before_the_work(self):
        seen = set()
        for program in PROGRAMS:
            flags = flags_of(program)
            for flag in ["json", "plot", "trace", "save_schedule"]:
                if flag not in flags or flags[flag][1] == "false":
                    continue  # batonctl --json is a switch
                self.says(program, [*NEEDED.get(program, []),
                                    f"--{flag}=/proc/none/file"],
                          f"--{flag}: cannot ", "/proc/none")
                seen.add((program, flag))
        self.assertGreater(len(seen), 12)

    def test_an_address_that_is_none_is_named_with_its_flag(self):
        for program, flags in ADDRESSES.items():
            for flag in flags:
                self.says(program, [*flag.split()], f"{flag.split('=')[0]}: ", "foo")

    def test_saving_what_is_not_saved_is_refused(self):
        for flag in ["--checkpoint_dir=x", "--weights=x"]:
            self.says("resnet50_pipeline", [flag],
                      "--checkpoint_dir and --weights are for --data")

    def test_every_program_knows_its_version(self):
        version = re.search(r'kVersion\[\] = "(.*)"',
                            (ROOT / "core/version.h").read_text())[1]
        for program in PROGRAMS:
            code, output = call(program, "--version")
            with self.subTest(program=program):
                self.assertEqual(output, f"{program} of Baton {version}\n")
                self.assertEqual(code, 0)

    def test_the_trainers_line_is_not_buried_by_those_of_its_workers(self):
        done = subprocess.run(
            [str(BIN / "baton-run"), "--workers=3", "--", "resnet50_pipeline",
             "--schedule=gpip"], text=True, timeout=60, capture_output=True,
            stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout + done.stderr,
                         r"^resnet50_pipeline: --schedule takes [^\n]*\n$")

    def test_scripts_name_an_unknown_option(self):
        for script in ["build", "bundle", "setup"]:
            script = f"tools/{script}.sh"
            done = subprocess.run(["bash", str(ROOT / script), "--zzzzzzzz"],
                                  text=True, capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            with self.subTest(script=script, output=done.stderr):
                self.assertEqual(done.returncode, 2)
                self.assertIn("--zzzzzzzz", done.stderr)

    def test_scripts_name_an_option_without_its_value(self):
        for script in ["tests/run.sh", "examples/quickstart.sh"]:
            done = subprocess.run(["bash", str(ROOT / script), "--preset"],
                                  text=True, capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            with self.subTest(script=script, output=done.stderr):
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"^\w+: --preset needs a name")


if __name__ == "__main__":
    unittest.main()
