# SPDX-License-Identifier: Apache-2.0
"""
Single faults that nobody wrote down: operators, each applied at every place of the sources where it fits. Read as text; where a
fault does not compile, it is none. What is only said (log lines) and what must never happen (CHECK) are left as they are.
"""
import functools
import random
import re

import csource
import tree

FOLDERS = ("auth", "cluster", "endpoint", "keeper", "policy", "router", "session")
QUIET = re.compile(r"^(?:LOG\w*|CHECK|log_\w+)$")
QUIET_CALL = re.compile(r"\b(?:LOG\w*|CHECK|log_\w+)\(")
RELEASE = re.compile(r"(?:_free|_unref|_fini|_forget|_unlink|_remove|_close|_clear|_drop|_end)$|^(?:free|close)$")
CONTROL = {"if", "while", "for", "switch", "return", "sizeof", "else", "do"}
JUMPS = {"break", "continue", "goto", "case", "default"}
HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
SIMPLE = re.compile(r"^(\t+)([A-Za-z_*][^\n;{}]*);[ \t]*$", re.M)
CALL = re.compile(r"(?:\(void\)!?)?([A-Za-z_]\w*)\((.*)\)$", re.S)
NO_EXPRESSION = re.compile(r"(?:struct|union|enum|const|static|unsigned)\b|at_end\(|\w+ \**\w+|[A-Z_]+\(")
THING = re.compile(r"(?<![\w.>])[a-z_]\w*(?:(?:->|\.)\w+)*(?![\w(])")
DESCRIPTOR = re.compile(r"(?:(?:\b|_)fd|\bpipe\.(?:in|out)|(?:fds|listeners)\)?\[\w+\])$")
OPENS = r"\b%s =[ \n]*(?:\w*open\w*|\w+_fd|socket|accept4?|dup|memfd_create|signalfd|memory_file_\w+|\w+_make_file)\("
POINTER = re.compile(r"\bstruct (\w+) \*(\w+)\b(?!\()")


class Fault:
    def __init__(self, path, begin, end, new, why):
        self.path, self.begin, self.end, self.new, self.why = path, begin, end, new, why

    def text(self):
        """Of the file with the fault."""
        text = tree.text(self.path)
        return text[:self.begin] + self.new + text[self.end:]

    def line(self):
        return tree.text(self.path).count("\n", 0, self.begin) + 1

    def is_outside(self):
        """Of functions."""
        return not any(begin <= self.begin and self.end <= end for _, begin, end in bodies(masked(self.path)))


@functools.lru_cache(maxsize=None)
def masked(path):
    """The text of the file, of the same length, without what is not code."""
    return HIDDEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), tree.text(path))


def bodies(text):
    """(begin of its head, begin, end) of every function."""
    for match in re.finditer(r"^\{\n(.*?)^\}", text, re.S | re.M):
        head = max(text.rfind(";", 0, match.start()), text.rfind("}", 0, match.start())) + 1
        if ")" in text[head:match.start()]:
            yield head, match.start(1), match.end(1)


def closing(text, at):
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return None


def operands(text, begin, end):
    """(begin, end) of what && or || joins there, outside of brackets; one kind of them only."""
    found, depth, start, kinds, i = [], 0, begin, set(), begin
    while i < end:
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0 and text[i:i + 2] in ("&&", "||"):
            found.append((start, i))
            kinds.add(text[i])
            start = i = i + 2
            continue
        if depth == 0 and text[i] in "?:":
            return []
        i += 1
    return found + [(start, end)] if len(kinds) == 1 else []


def conditions(text, begin, end):
    """(begin, end) of each that an if or a while asks."""
    for match in re.finditer(r"\b(?:if|while) \(", text[begin:end]):
        at = begin + match.end() - 1
        until = closing(text, at)
        if until is not None and not QUIET.match(text[at + 1:until].split("(")[0]):
            yield at + 1, until


def statements(text, begin, end):
    """(begin, end with its semicolon, text) of each simple one, on whatever number of lines."""
    for match in re.finditer(r"(?:\A|[;{}):]|\belse)[ \n]*^(\t+)((?:\(void\)!?)?[A-Za-z_*][^;{}]*)(?=;)", text[begin:end], re.M):
        word = re.match(r"(?:\(void\)!?)?\*?(\w+)", match.group(2))
        if word and word.group(1) not in CONTROL | JUMPS:
            yield begin + match.start(2), begin + match.end(2) + 1, match.group(2)


def asked_at(text, begin, end, at):
    """Where the expression begins that what stands at `at` is a part of, and something else may be asked first; None: unknown."""
    spans = list(conditions(text, begin, end))
    spans += [(begin + m.start(1), begin + m.end(1)) for m in re.finditer(r"\breturn ([^;]+);", text[begin:end])]
    spans += [span[:2] for span in statements(text, begin, end) if not NO_EXPRESSION.match(span[2])]
    return next((first for first, last in spans if first <= at < last), None)


def quiet(text, begin, end):
    """(begin, end) of each call there that only says something, or checks what must never happen."""
    return [(begin + m.start(), closing(text, begin + m.end() - 1)) for m in QUIET_CALL.finditer(text[begin:end])]


def negated(text, head, begin, end):
    for at, until in conditions(text, begin, end):
        yield at, until, "!(%s)"


def dropped(text, head, begin, end):
    spans = list(conditions(text, begin, end))
    spans += [(begin + m.start(1), begin + m.end(1)) for m in re.finditer(r"\breturn ([^;]+);", text[begin:end])]
    for at, until in spans:
        parts = operands(text, at, until)
        for i, (first, last) in enumerate(parts):
            yield (first, parts[i + 1][0], "") if i + 1 < len(parts) else (parts[i - 1][1], last, "")


def calls(text, begin, end, is_release):
    for at, until, statement in statements(text, begin, end):
        match = CALL.match(statement)
        if match and not QUIET.match(match.group(1)) and bool(RELEASE.search(match.group(1))) == is_release:
            yield at, until, ";"


def removed(text, head, begin, end):
    yield from calls(text, begin, end, False)


def kept(text, head, begin, end):
    yield from calls(text, begin, end, True)
    for match in re.finditer(r"\bat_end\(\w+\) ", text[begin:end]):
        yield begin + match.start(), begin + match.end(), ""


def is_descriptor(text, begin, end, at):
    """Whether what stands before `at` is one, by its name or by where it is from."""
    before = text[begin:at].rstrip()
    name = re.search(r"[\w.>-]*$", before).group()
    return bool(DESCRIPTOR.search(before) or name and re.search(OPENS % re.escape(name), text[begin:end]))


def is_same_there(text, at, until):
    """Whether nothing differs where both are equal: the greater, the lesser or the distance is taken, a > b ? a - b : 0."""
    one, other = re.search(r"[\w.>-]*$", text[:at]).group(), re.match(r" ([\w.>-]*)", text[until:])
    rest = " ".join(text[until + other.end():until + 200].split()) if other else ""
    pairs = [(re.escape(a), re.escape(b)) for a, b in ((one, other and other.group(1)), (other and other.group(1), one)) if a and b]
    return any(re.match(r"\? %s : %s[;,)\]]|\? %s - %s : 0[;,)]|\) %s = %s;" % (a, b, a, b, a, b), rest) for a, b in pairs)


def shifted(text, head, begin, end):
    """But 0 is no descriptor that anybody gets: those of the standard streams are open from the start (descriptors_fill_standard)."""
    for match in re.finditer(r" (<|<=|>|>=|\+ 1|- 1)(?= |\b|[;)\]])( 0\b)?", text[begin:end]):
        old, at = match.group(1), begin + match.start()
        if match.group(2) and old in ("<", ">=") and is_descriptor(text, begin, end, at):
            continue
        if old[0] in "<>" and is_same_there(text, at, begin + match.end(1)):
            continue
        new = "" if old[0] in "+-" else old[0] if old[1:] else old + "="
        yield begin + match.start(1), begin + match.end(1), new


def inverted(text, head, begin, end):
    is_bool = re.search(r"\bbool\s", text[head:begin].split("(")[0] + " ")
    others = {"true": "false", "false": "true", "0": "-1", "-1": "0"}
    for match in re.finditer(r"\breturn ([^;]+);", text[begin:end]):
        span = begin + match.start(1), begin + match.end(1)
        if match.group(1) in others:
            yield span + (others[match.group(1)],)
        elif is_bool:
            yield span + ("!(%s)",)


def share(first, second):
    """Whether these statements name one thing: x->a and x do, x->a and x->b do not. What is freed at the end of the turn is still there."""
    ours, theirs = ([re.split(r"->|\.", name) for name in THING.findall(text)] for text in (first, second))
    return not any("loop_defer_free(" in text for text in (first, second)) and any(
        a[:len(b)] == b[:len(a)] for a in ours for b in theirs)


def swapped(text, head, begin, end):
    """The order of two that name the same thing, or one a part of the other's; one of them is a call."""
    before = None
    for match in SIMPLE.finditer(text, begin, end):
        word = re.search(r"\w+", match.group(2)).group()
        is_one = word not in CONTROL | JUMPS | {"struct", "const", "static"} and not re.match(
            r"\w+ \**\w+(?: =|$|,|\[)", match.group(2)) and not QUIET.match(word)
        here = (match.start(2), match.end(2)) if is_one else None
        if here and before and text[before[1]:here[0]] == ";\n" + match.group(1):
            first, second = text[slice(*before)], text[slice(*here)]
            above = text[:before[0]].rstrip()[-1:]
            if above in ";{}" and share(first, second) and (CALL.match(first) or CALL.match(second)):
                yield before[0], here[1], "%2s" + text[before[1]:here[0]] + "%1s"
        before = here


def mistaken(text, head, begin, end):
    """One of a kind is taken for another."""
    of = {}
    for kind, name in POINTER.findall(text[head:end]):
        of.setdefault(kind, [])
        if name not in of[kind]:
            of[kind].append(name)
    for names in of.values():
        for name, other in [(a, b) for a in names for b in names if a != b]:
            last = max(m.end() for m in re.finditer(r"\*%s\b" % other, text[head:end])) + head
            for match in re.finditer(r"(?<![.>\w*])%s\b(?=->|,|\))" % name, text[max(last, begin):end]):
                at = max(last, begin) + match.start()
                yield at, at + len(name), other


OPERATORS = {
    "a condition is negated": negated, "a condition is dropped": dropped, "a call is removed": removed,
    "a release is dropped": kept, "a bound is shifted": shifted, "a return is inverted": inverted,
    "the order is swapped": swapped, "another of its kind is used": mistaken,
}


@functools.lru_cache(maxsize=None)
def places(folder):
    """Why -> all faults of that operator in this folder of src/."""
    found = {why: [] for why in OPERATORS}
    for path in csource.sources(".c"):
        if path.split("/")[1] != folder:
            continue
        text, source = masked(path), tree.text(path)
        for head, begin, end in bodies(text):
            left = quiet(text, begin, end)
            for why, operator in OPERATORS.items():
                for at, until, new in operator(text, head, begin, end):
                    if any(first <= at and until <= last for first, last in left):
                        continue
                    if "%2s" in new:
                        first, second = re.split(r";\n\t+", source[at:until], maxsplit=1)
                        new = new.replace("%2s", second).replace("%1s", first)
                    elif "%s" in new:
                        new = new.replace("%s", source[at:until])
                    found[why].append(Fault(path, at, until, new, why))
    return {why: faults for why, faults in found.items() if faults}


def chosen(seed, folder, paths):
    """Without end: faults of the folder, in files whose path begins so; each operator as often as any other."""
    chance, taken = random.Random("%s %s" % (seed, folder)), set()
    of = {why: [f for f in faults if f.path.startswith(paths)] for why, faults in places(folder).items()}
    of = {why: faults for why, faults in of.items() if faults}
    while True:
        fault = chance.choice(of[chance.choice(sorted(of))])
        if (fault.path, fault.begin, fault.new) not in taken:
            taken.add((fault.path, fault.begin, fault.new))
            yield fault
