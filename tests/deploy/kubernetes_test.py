# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes/baton.yaml has only fields that Kubernetes knows, and fits itself
and the programs.

Usage: kubernetes_test.py BIN
Exits with 77, which skips the test, where python3-kubernetes or python3-yaml is missing.
"""

import pathlib
import re
import subprocess
import sys
import unittest

try:
    import kubernetes.client
    import yaml
except ImportError as missing:
    print(f"no python3-{missing.name} here: skipped")
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


def model_of(part):
    """The class by which Kubernetes' own client knows what the part is."""
    *group, version = part["apiVersion"].split("/")
    version = version.capitalize()
    api = f"{''.join(group).capitalize() or 'Core'}{version}Api"
    if not hasattr(kubernetes.client, api):
        raise LookupError(f"there is no {part['apiVersion']}")
    return f"{version}{part['kind']}"


def unknown_fields(value, kind, where):
    """What of a value its type (V1Pod, list[str], dict(str, str), str) lacks."""
    inner = re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", kind)
    if inner:
        items = enumerate(value) if inner[1] else value.items()
        for key, item in items:
            yield from unknown_fields(item, inner[1] or inner[2], f"{where}.{key}")
        return
    model = getattr(kubernetes.client, kind, None)
    if model is None:
        return
    fields = {name: model.openapi_types[field]
              for field, name in model.attribute_map.items()}
    for name, item in value.items():
        if name in fields:
            yield from unknown_fields(item, fields[name], f"{where}.{name}")
        else:
            yield f"{where} has no {name}"


class Kubernetes(unittest.TestCase):

    def test_has_only_fields_that_kubernetes_knows(self):
        unknown = [field for (kind, _), part in PARTS.items()
                   for field in unknown_fields(part, model_of(part), kind)]
        self.assertEqual([], unknown)

    def test_finds_fields_that_kubernetes_does_not_know(self):
        spec = {"containers": [{"name": "a", "imag": "b"}], "restart": "Never"}
        self.assertEqual(["pod.containers.0 has no imag", "pod has no restart"],
                         list(unknown_fields(spec, "V1PodSpec", "pod")))
        with self.assertRaises(LookupError):
            model_of({"apiVersion": "apps/v9", "kind": "Deployment"})

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
