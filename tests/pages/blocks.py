# SPDX-License-Identifier: Apache-2.0
"""
The fenced blocks of the pages for users, and what the HTML comment right before each says of it. Used by tests/pages/run,
which runs them, and by tests/check-pages, which asks that none is without.
"""
import re

KINDS = ("run", "check", "example", "not run")
# The keys that may follow, one a line, and of which kind each is.
KEYS = {"prints": ("run",), "status": ("run", "check"), "background": ("run",), "file": ("run",), "before": ("check",), "with": ("check",)}
PICTURES = ("mermaid", "dot", "text")  # nobody runs them
BLOCK = re.compile(r"(?:^ *<!--(?P<comment>(?:(?!-->).)*)-->\n)?^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)


class Block:
    def __init__(self, page, found, line):
        self.page, self.line, self.language = page, line, found["language"]
        indent = len(found["indent"])
        self.text = "".join(row[indent:] if row.strip() else row for row in found["text"].splitlines(True))
        self.kind = self.name = None
        self.problems = []
        self.keys = {}
        rows = [row.strip() for row in (found["comment"] or "").strip().splitlines()]
        if rows:
            self._read(rows)

    def __str__(self):
        return "%s:%d" % (self.page, self.line)

    def _read(self, rows):
        kind, _, self.name = (part.strip() for part in rows[0].partition(":"))
        if kind not in KINDS or not self.name:
            return
        self.kind = kind
        for row in rows[1:]:
            key, _, value = (part.strip() for part in row.partition(":"))
            if self.kind not in KEYS.get(key, ()):
                self.problems.append("`%s` is no key of a block that is marked with `%s`" % (key, self.kind))
            self.keys.setdefault(key, []).append(value)

    def all(self, key):
        return self.keys.get(key, [])

    def one(self, key, otherwise=None):
        return self.keys.get(key, [otherwise])[-1]


def blocks(page, text):
    """In their order, without pictures."""
    found = [Block(page, b, text.count("\n", 0, b.start("indent")) + 1) for b in BLOCK.finditer(text)]
    return [block for block in found if block.language not in PICTURES]
