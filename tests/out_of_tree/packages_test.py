#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What cpack makes in a built tree: three packages for Debian that together have what
`cmake --install` installs, each file once, and that name what they need.

Usage: packages_test.py BUILD
Exits with 77, which skips the test, where dpkg-dev or file is missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
for tool in ["dpkg-deb", "dpkg-shlibdeps", "file"]:
    if shutil.which(tool) is None:
        print(f"no {tool} here: skipped")
        sys.exit(77)

PROGRAMS = {"baton": {"baton-rendezvous", "baton-run", "baton-worker"},
            "baton-dev": set(),
            "baton-tools": {"baton-certs", "batonctl"}}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if path.is_symlink() or not path.is_dir()}


class Packages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        work = pathlib.Path(cls.folder.name)
        run("cmake", "--install", str(BUILD), "--prefix", str(work / "installed"))
        cls.installed = files_below(work / "installed")
        run("cpack", "--config", str(BUILD / "CPackConfig.cmake"), "-B",
            str(work / "packed"))
        cls.files, cls.depends = {}, {}
        for package in (work / "packed").glob("*.deb"):
            name, depends = run("dpkg-deb", "-f", str(package), "Package",
                                "Depends").splitlines()
            name = name.removeprefix("Package: ")
            run("dpkg-deb", "-x", str(package), str(work / name))
            cls.files[name] = files_below(work / name / "usr")
            cls.depends[name] = re.findall(r"(?:: |, )([a-z0-9.+-]+)", depends)

    def test_have_together_what_an_installed_tree_has(self):
        self.assertEqual(set(PROGRAMS), set(self.files))
        self.assertEqual(self.installed, set().union(*self.files.values()))

    def test_have_no_file_twice(self):
        self.assertEqual(len(self.installed), sum(map(len, self.files.values())))

    def test_have_each_their_programs_and_licence(self):
        for name, programs in PROGRAMS.items():
            bins = {file.removeprefix("bin/") for file in self.files[name]
                    if file.startswith("bin/")}
            self.assertEqual(programs, bins, name)
            self.assertIn(f"share/doc/{name}/copyright", self.files[name])

    def test_have_what_find_package_reads_where_one_develops(self):
        wanted = {file for file in self.installed
                  if re.match(r"include/|lib/cmake/|lib/.*\.a$", file)}
        self.assertEqual(set(), wanted - self.files["baton-dev"])

    def test_name_what_they_need(self):
        self.assertIn("baton", self.depends["baton-dev"])
        self.assertIn("libgrpc++-dev", self.depends["baton-dev"])
        mpis = {"libmpich-dev", "libopenmpi-dev"}
        self.assertEqual("lib/libbaton_mpi.a" in self.files["baton-dev"],
                         not mpis.isdisjoint(self.depends["baton-dev"]))
        for name in ["baton", "baton-tools"]:  # of what they are linked with
            self.assertIn("libc6", self.depends[name])
            self.assertNotIn("libgrpc++-dev", self.depends[name])


if __name__ == "__main__":
    unittest.main()
