# SPDX-License-Identifier: MIT
"""The Python module: jobs of three ranks, started by gridcoll-run ($GRIDCOLL_RUN).

    test_module.py HEADER [TEST...]
"""
import os
import re
import subprocess
import sys
import unittest

import gridcoll

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = sys.argv.pop(1)


def run(*program, survive=False):
    """Exit status, lines of output, errors."""
    command = [os.environ["GRIDCOLL_RUN"], "-n", "3", "--quiet-prefix"]
    job = subprocess.run(command + ["--survive"] * survive + ["--", sys.executable, *program],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return job.returncode, job.stdout.splitlines(), job.stderr


class Jobs(unittest.TestCase):
    def succeeds(self, case):
        status, out, err = run(os.path.join(HERE, "job.py"), case)
        self.assertEqual((status, out, err), (0, ["done"] * 3, ""))

    def test_moves(self):
        self.succeeds("moves")

    def test_settings(self):
        self.succeeds("settings")

    def test_refusals(self):
        self.succeeds("refusals")

    def test_threads(self):
        self.succeeds("threads")

    def test_forks(self):
        self.succeeds("forks")

    def test_dies(self):
        status, out, err = run(os.path.join(HERE, "job.py"), "dies", survive=True)
        self.assertEqual(out, ["rank 2 is missed"] * 2, err)
        self.assertIn("rank 2 on local2 failed: killed by signal 9", err)

    def test_shrinks(self):
        status, out, err = run(os.path.join(HERE, "job.py"), "shrinks", survive=True)
        self.assertEqual((status, out), (0, ["done"] * 2), err)
        self.assertIn("2 of 3 ranks go on, without rank 1", err)

    def test_throws(self):
        status, out, err = run(os.path.join(HERE, "job.py"), "throws", survive=True)
        self.assertNotEqual(status, 0)
        self.assertEqual(len(out), 2, err)
        for line in out:
            self.assertRegex(line, r"^told: rank 1 .*KeyError: 'no such weights'")

    def test_no_job(self):
        env = {k: v for k, v in os.environ.items() if not re.match("GRIDCOLL_(RANK|LAB)", k)}
        code = ("import gridcoll\ntry:\n gridcoll.init()\nexcept gridcoll.Error as e:\n"
                " print(e.code.name, e.rank, e)")
        text = subprocess.run([sys.executable, "-c", code], env=env, text=True, timeout=60,
                              stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(text, r"^NOLAUNCHER None .*gridcoll-run")

    def test_no_library(self):
        env = dict(os.environ, GRIDCOLL_LIBRARY="/nowhere/libgridcoll.so.0")
        job = subprocess.run([sys.executable, "-c", "import gridcoll; gridcoll.init()"], env=env,
                             text=True, timeout=60, stderr=subprocess.PIPE)
        self.assertEqual(job.returncode, 1)
        self.assertRegex(job.stderr, "OSError: gridcoll: .*/nowhere/.*set GRIDCOLL_LIBRARY")


class Header(unittest.TestCase):
    """The module's numbers are those of gridcoll.h."""

    def setUp(self):
        with open(HEADER) as f:
            self.text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)

    def names(self, enum):
        """The members before the first that has a number or counts those before it."""
        body = re.search(r"enum %s \{(.*?)\}" % enum, self.text, re.S)[1]
        names = [n.strip() for n in body.split(",")]
        end = next(i for i, n in enumerate(names) if re.match("GCOLL_N[A-Z]+S$", n))
        return [n.removeprefix("GCOLL_") for n in names[:end]]

    def test_types(self):
        self.assertEqual([t.name for t in sorted(gridcoll.Type)], self.names("gcoll_type"))

    def test_ops(self):
        self.assertEqual([o.name for o in sorted(gridcoll.Op)], self.names("gcoll_op"))

    def test_errors(self):
        table = re.findall(r"X\((\w+), (-\d+), ", self.text)
        self.assertGreater(len(table), 10)
        for name, value in table:
            self.assertEqual(getattr(gridcoll.Error, name), int(value))
        codes = [c for n, c in vars(gridcoll.Error).items() if n.isupper() and isinstance(c, int)]
        self.assertEqual(len(codes), len(table) + 1)  # and OK

    def test_sizes(self):
        from gridcoll._library import library
        lib = library()
        for t in gridcoll.Type:
            self.assertEqual(lib.gcoll_type_size(t), t.nbytes)


if __name__ == "__main__":
    unittest.main()
