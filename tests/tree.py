# SPDX-License-Identifier: Apache-2.0
"""What the check-* scripts share: the source tree, and saying the verdict in TAP."""
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def files(under, *endings):
    """Paths relative to the top of every file below `under` that ends so, sorted."""
    found = []
    for folder, folders, names in os.walk(os.path.join(TOP, under)):
        folders[:] = sorted(f for f in folders if f not in ("node_modules", "__pycache__"))
        for name in names:
            if name.endswith(endings):
                found.append(os.path.relpath(os.path.join(folder, name), TOP))
    return sorted(found)


def text(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def verdict(what, problems):
    """One TAP test; ends the program."""
    print("1..1")
    for line in problems:
        print("# " + line)
    print(("not ok" if problems else "ok") + " 1 - " + what)
    sys.exit(1 if problems else 0)


def skip(what, why):
    print("1..1")
    print("ok 1 - " + what + " # SKIP " + why)
    sys.exit(0)
