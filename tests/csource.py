# SPDX-License-Identifier: Apache-2.0
"""
The C of src/, read as text: units, the functions that they define, and the names that these mention.

A unit is NAME.c with its NAME.h. Unit tests, fakes and their stages are left out. Nothing is preprocessed: every branch
of an #if counts, macros count as what they stand for, and an included .def as if it stood in the file.
"""
import functools
import os
import re
import sys

import tree

FUNCTION_MAX = 70  # lines, from the first of its head to the closing brace

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')', re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)".*', re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?((?:\\\n|[^\n])*)", re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
TOKEN = re.compile(r"\w+|->|\S")
NAME = re.compile(r"[A-Za-z_]\w*")
NOT_A_TYPE = {"case", "do", "else", "goto", "return", "sizeof"}
TAGS = {"struct", "union", "enum", "goto"}


def is_test(path):
    name = os.path.basename(path)
    return name.startswith("fake_") or name.endswith(("_test.c", "_test.h", "stage.c", "stage.h"))


def sources(*endings):
    """Paths of what the programs are made of."""
    return [p for p in tree.files("src", *endings) if not is_test(p)]


def includes(path):
    """What path, relative to the top, includes by a path below src/."""
    return INCLUDE.findall(code(tree.text(path)))


# ---- text ----

def code(text):
    """The text without comments; lines stay where they are."""
    return COMMENT.sub(lambda m: m.group(1) or "\n" * m.group().count("\n") or " ", text)


def plain(text):
    """The text without comments and without what literals say."""
    return LITERAL.sub('""', code(text))


def lines_of_code(text):
    """Numbers, from 1, of the lines that are neither blank nor comment."""
    return [at for at, line in enumerate(code(text).split("\n"), 1) if line.strip()]


def function_lines(text):
    """(first line from 1, lines) of every function: a brace in column 0 opens and closes it."""
    lines, begin = text.splitlines(), None
    for at, line in enumerate(lines):
        if line.startswith("{"):
            begin = at
            while begin > 0 and lines[begin - 1].strip() and lines[begin - 1][0] not in "#}/ *":
                begin -= 1
        elif line.startswith("}") and begin is not None:
            yield begin + 1, at - begin + 1
            begin = None


def with_tables(text):
    """Each #include of a .def is replaced by that file."""
    def table(match):
        path = "src/" + match.group(1)
        is_there = path.endswith(".def") and os.path.exists(os.path.join(tree.TOP, path))
        return tree.text(path) if is_there else match.group()
    return INCLUDE.sub(table, text)


# ---- tokens ----

class Item:
    """What stands at the outermost level of a file: a definition or a declaration, up to its `;` or last `}`."""

    def __init__(self, tokens, begin):
        self.tokens, self.begin = tokens, begin  # begin: offset in the text
        self.outer = outer_level(tokens)
        self.is_function = tokens[-1] == "}"
        self.at = self.name_at()
        self.name = None if self.at is None else tokens[self.at]
        self.is_static = "static" in tokens[:self.at]
        self.is_prototype = (self.at is not None and not self.is_function and tokens[self.at + 1] == "("
                             and tokens[0] != "typedef" and "=" not in tokens)

    def name_at(self):
        """Index of the name of the function or object; None: a type or an assertion."""
        for i, following in zip(self.outer, self.outer[1:]):
            token, before = self.tokens[i], self.tokens[max(i - 1, 0)]
            if (NAME.fullmatch(token) and token not in ("__attribute__", "_Static_assert") and before not in TAGS
                    and self.tokens[following] in ("(", "[", "=", ";")):
                return i
        return None

    def inside(self):
        """The body of a function, or the initialiser of an object."""
        opening = "{" if self.is_function else "="
        return self.tokens[next((i for i in self.outer if self.tokens[i] == opening), len(self.tokens)):]


def outer_level(tokens):
    """Indices of those outside of all brackets, and of the outermost brackets themselves."""
    found, depth = [], 0
    for i, token in enumerate(tokens):
        depth -= token in (")", "}", "]")
        if depth == 0:
            found.append(i)
        depth += token in ("(", "{", "[")
    return found


def items(text, path):
    """Of what plain() makes of the text of path."""
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    tokens, begin, depth, is_function = [], 0, 0, False
    for match in TOKEN.finditer(text):
        token = match.group()
        if not tokens:
            begin = match.start()
        if token == "{" and depth == 0:
            is_function = tokens[-1:] == [")"] and "=" not in tokens
        tokens.append(token)
        depth += (token in ("(", "{", "[")) - (token in (")", "}", "]"))
        if depth == 0 and (token == ";" or token == "}" and is_function):
            yield Item(tokens, begin)
            tokens, is_function = [], False
    if tokens:
        sys.exit(f"csource: {path}: this has no end: {' '.join(tokens[:8])}")


def variables(tokens):
    """Names that are declared there as variables or parameters: `type name`, `type *name`, and what is assigned to."""
    found = set()
    for i, token in enumerate(tokens[:-1]):
        if not NAME.fullmatch(token) or tokens[i + 1] not in (";", "=", ",", ")", "[", ":"):
            continue
        before = i - 1
        while before >= 0 and tokens[before] in ("*", "const"):
            before -= 1
        word = tokens[before] if before >= 0 else ""
        is_declared = NAME.fullmatch(word) and word not in NOT_A_TYPE and word not in TAGS
        is_assigned = tokens[i + 1] == "=" and tokens[i + 2:i + 3] != ["="]
        is_listed = word == "," and tokens[i + 1] == ";"
        is_pointer = word == "(" and before < i - 1 and tokens[i + 1] == ")"
        if is_declared or is_assigned or is_listed or is_pointer:
            found.add(token)
    return found


def mentions(tokens):
    """Names that are used there, but not those of members, of types with a tag, and of variables."""
    names = set()
    for i, token in enumerate(tokens):
        before = tokens[max(i - 3, 0):i]
        is_offset = before[:1] == ["struct"] and before[2:] == [","]  # offsetof(struct x, member)
        is_member = before[-1:] in (["."], ["->"]) or is_offset
        if NAME.fullmatch(token) and not is_member and not TAGS.intersection(before[-1:]):
            names.add(token)
    return names - variables(tokens)


# ---- units ----

def macros(text):
    """Macro -> what its text mentions. text: without literals."""
    found = {}
    for name, parameters, body in DEFINE.findall(text):
        used = mentions(TOKEN.findall(body.replace("\\\n", " "))) - set(NAME.findall(parameters))
        found[name] = found.get(name, set()) | used
    return found


@functools.lru_cache(maxsize=None)
def readable(path):
    return plain(with_tables(code(tree.text(path))))


@functools.lru_cache(maxsize=None)
def header_macros():
    found = {}
    for path in sources(".h"):
        for name, used in macros(readable(path)).items():
            found[name] = found.get(name, set()) | used
    return found


@functools.lru_cache(maxsize=None)
def items_of(path):
    return list(items(readable(path), path))


class Unit:
    """`defined`: functions and data, the name of each and the names that it mentions."""

    def __init__(self, name):
        self.name = name          # "router/lane", without src/
        self.defined = {}
        self.functions = set()    # those that others may call
        self.exported = set()     # these, and data that others may use
        self.known = dict(header_macros())

    def read(self, path):
        self.known.update(macros(readable(path)))
        for item in items_of(path):
            if item.name is None or item.is_prototype:
                continue
            used = self.expanded(mentions(item.inside()) - variables(item.tokens))
            self.defined[item.name] = self.defined.get(item.name, set()) | used
            if not item.is_static:
                self.exported.add(item.name)
                self.functions |= {item.name} if item.is_function else set()

    def expanded(self, names):
        """The names, and what those that are macros stand for."""
        found, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self.known.get(name, ())
        return found

    def mentions(self):
        """Names that are not the unit's own."""
        return set().union(*self.defined.values()) - set(self.defined)


@functools.lru_cache(maxsize=None)
def units():
    """Name -> unit, for all of src/."""
    found = {}
    for path in sources(".h", ".c"):
        name = os.path.splitext(path[len("src/"):])[0]
        found.setdefault(name, Unit(name)).read(path)
    return found


# ---- arrows ----

def calls(of):
    """(unit, unit) -> names of the functions of the second that the first mentions; both are among `of`."""
    owner = {function: unit.name for unit in of for function in unit.functions}
    found = {}
    for unit in of:
        for name in sorted(unit.mentions() & set(owner)):
            found.setdefault((unit.name, owner[name]), []).append(name)
    return found


def circles(arrows):
    """The largest sets whose members all reach each other, sorted; arrows: pairs."""
    after = {}
    for a, b in arrows:
        after.setdefault(a, set()).add(b)

    def reached(a):
        found, todo = set(), [a]
        while todo:
            new = after.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    reach = {a: reached(a) for a in after}
    return sorted({tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in after} - {()})
