# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes/baton.yaml fits itself and the programs.

Usage: kubernetes_test.py BIN
Exits with 77, which skips the test, where there is no python3-yaml.
"""

import pathlib
import re
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("no python3-yaml here: skipped")
    sys.exit(77)

FILE = pathlib.Path(__file__).resolve().parents[2] / \
    "deploy/kubernetes/baton.yaml"
BIN = pathlib.Path(sys.argv.pop(1))
PARTS = {(d["kind"], d["metadata"]["name"]): d
         for d in yaml.safe_load_all(FILE.read_text())}


def pod(kind, name):
    return PARTS[kind, name]["spec"]["template"]["spec"]


PODS = {"rendezvous": pod("Deployment", "baton-rendezvous"),
        "worker": pod("StatefulSet", "worker"),
        "trainer": pod("Job", "baton-trainer")}


def environment(name):
    return {e["name"]: e.get("value")
            for e in PODS[name]["containers"][0].get("env", [])}


class Kubernetes(unittest.TestCase):

    def test_the_world_is_all_workers_and_the_trainer(self):
        replicas = PARTS["StatefulSet", "worker"]["spec"]["replicas"]
        for name in ["worker", "trainer"]:
            self.assertEqual(str(replicas + 1),
                             environment(name)["BATON_WORLD_SIZE"])

    def test_all_meet_where_the_rendezvous_listens(self):
        service = PARTS["Service", "baton-rendezvous"]["spec"]
        port = service["ports"][0]["port"]
        self.assertIn(f"--listen=0.0.0.0:{port}",
                      PODS["rendezvous"]["containers"][0]["command"])
        labels = PARTS["Deployment", "baton-rendezvous"]["spec"]["template"][
            "metadata"]["labels"]
        self.assertEqual(service["selector"], labels)
        for name in ["worker", "trainer"]:
            self.assertEqual(f"baton-rendezvous:{port}",
                             environment(name)["BATON_RENDEZVOUS"])

    def test_selectors_are_the_labels_of_their_pods(self):
        for kind, name in [("Deployment", "baton-rendezvous"),
                           ("StatefulSet", "worker")]:
            spec = PARTS[kind, name]["spec"]
            self.assertEqual(spec["selector"]["matchLabels"],
                             spec["template"]["metadata"]["labels"])

    def test_keys_are_where_the_programs_look_for_them(self):
        for name, spec in PODS.items():
            main = spec["containers"][0]
            mounts = {m["mountPath"]: m["name"] for m in main["volumeMounts"]}
            self.assertEqual("keys", mounts["/keys"], name)
            said = main["command"] + [environment(name).get("BATON_TLS_DIR")]
            self.assertTrue({"--tls_dir=/keys", "/keys"} & set(said), name)
            self.assertEqual({"secret", "keys"},
                             {v["name"] for v in spec["volumes"]})

    def test_programs_have_the_flags_that_they_are_given(self):
        for name, program in [("rendezvous", "baton-rendezvous"),
                              ("worker", "baton-worker"),
                              ("trainer", "toy_model")]:
            main = PODS[name]["containers"][0]
            told = subprocess.run([BIN / program, "--help"], check=True,
                                  capture_output=True, text=True).stdout
            for flag in re.findall(r"--(\w+)=", " ".join(
                    main["command"] + main.get("args", []))):
                self.assertIn(f"\n  --{flag}  ", told, name)


if __name__ == "__main__":
    unittest.main()
