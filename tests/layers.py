# SPDX-License-Identifier: Apache-2.0
"""How the files of src/ may depend on each other: the rows of src/LAYERS, and no circle of calls within a directory."""
import os

import csource
import tree

KNOWN = "tests/known-circles"  # units that call each other in a circle as yet, one a line; it may be missing


# ---- between directories ----

def rows():
    """directory -> number of its row."""
    row, at = {}, 0
    for line in tree.text("src/LAYERS").splitlines():
        names = line.split("#")[0].split()
        for name in names:
            row[name] = at
        at += bool(names)
    return row


def directory(path):
    """Of a path below src/: its first part, "." for src/ itself."""
    return path.split("/")[0] if "/" in path else "."


def wrong_includes_of(path, row):
    """path: relative to src/."""
    own = directory(path)
    if own not in row:
        return [f"src/{path}: the directory {own} stands on no row of src/LAYERS"]
    found = []
    for name in csource.includes("src/" + path):
        other = directory(name)
        if not os.path.exists(os.path.join(tree.TOP, "src", name)):
            found.append(f'src/{path}: "{name}" is not a path below src/')
        elif other != own and row.get(other, 99) >= row[own]:
            found.append(f'src/{path}: "{name}" lies '
                         + ("beside it" if row.get(other) == row[own] else "above it") + " in src/LAYERS")
    return found


def files():
    """Tests include no more than the rest."""
    return [p[len("src/"):] for p in tree.files("src", ".c", ".h", ".def")]


def wrong_includes():
    row = rows()
    return [problem for path in files() for problem in wrong_includes_of(path, row)]


# ---- within a directory ----

def calls():
    """csource.calls, of each directory alone."""
    within = {}
    for unit in csource.units().values():
        within.setdefault(directory(unit.name), []).append(unit)
    return [csource.calls(within[d]) for d in sorted(within)]


def known():
    if not os.path.exists(os.path.join(tree.TOP, KNOWN)):
        return set()
    lines = [line.split("#")[0].strip() for line in tree.text(KNOWN).splitlines()]
    return {line for line in lines if line}


def told(arrows, circle):
    """What makes it a circle, in lines."""
    where = os.path.dirname("src/" + circle[0])
    short = {unit: os.path.basename(unit) for unit in circle}
    return [f"{where}: {', '.join(short.values())} call each other in a circle:"] + [
        f"    {short[a]} -> {short[b]}: {', '.join(names)}"
        for (a, b), names in sorted(arrows.items()) if a in short and b in short]


def circle_problems():
    """What is in a circle and not known, and what is known and in none."""
    listed, in_circles, found = known(), set(), []
    for arrows in calls():
        for circle in csource.circles(arrows):
            in_circles |= set(circle)
            found += [] if set(circle) <= listed else told(arrows, circle)
    return found + [f"{KNOWN}: {unit} is in no circle any more; strike it" for unit in sorted(listed - in_circles)]
