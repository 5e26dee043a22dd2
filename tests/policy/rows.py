# SPDX-License-Identifier: Apache-2.0
"""
What policy promises, key by key: the settings of a server, what passes, and what does not. `passes` are calls with a text that
the result must hold; `refused` are calls with the code (or the reason) that they get. Words in capitals are replaced: FOLDER.
"""
import json

NO_SUCH = -32602


def tool(name, /, **arguments):
    return "tools/call", {"name": name, "arguments": arguments}


def prompt(name, /, **arguments):
    return "prompts/get", {"name": name, "arguments": arguments}


def read(uri):
    return "resources/read", {"uri": uri}


def listed(kind):
    return kind + "/list", {}


def nothing(_):
    """Of what may be seen."""
    return False


STATIC = "demo://resource/static/document/startup.md"
PROTO = ("tools/call", {"name": "echo", "arguments": {"text": "x", "__proto__": 1}})

ROWS = [
    dict(key="tools.allow", server="files", conf={"tools": {"allow": ["read_*", "list_*"]}},
         passes=[(tool("read_text_file", path="FOLDER/in/a.txt"), "hello"), (listed("tools"), "list_directory")],
         refused=[(tool("write_file", path="FOLDER/in/new.txt", content="x"), NO_SUCH)],
         lists=[("tools", lambda name: name.startswith(("read_", "list_")))], untouched="FOLDER/in/new.txt"),
    dict(key="tools.deny", server="everything", conf={"tools": {"deny": ["get-env"]}},
         passes=[(tool("echo", message="hi"), "Echo: hi")], refused=[(tool("get-env"), NO_SUCH), (tool("GET-ENV"), NO_SUCH)],
         lists=[("tools", lambda name: name != "get-env")]),
    dict(key="prompts.allow", server="everything", conf={"prompts": {"allow": ["simple-prompt"]}},
         passes=[(prompt("simple-prompt"), "prompt")], refused=[(prompt("args-prompt", city="Rome"), NO_SUCH)],
         lists=[("prompts", lambda name: name == "simple-prompt")]),
    dict(key="prompts.deny", server="demo", conf={"prompts": {"deny": ["greet"]}},
         passes=[(tool("echo", text="hi"), "hi")], refused=[(prompt("greet", name="you"), NO_SUCH)],
         lists=[("prompts", nothing)]),
    dict(key="resources.allow", server="everything", conf={"resources": {"allow": ["demo://resource/static/*"]}},
         passes=[(read(STATIC), "contents")],
         refused=[(read("demo://resource/dynamic/text/1"), NO_SUCH), (read("demo://resource/static/../dynamic/text/1"), NO_SUCH)],
         lists=[("resources", lambda uri: uri.startswith("demo://resource/static/"))]),
    dict(key="resources.deny", server="demo", conf={"resources": {"deny": ["demo://clock"]}},
         passes=[(read("demo://counter"), "counter")], refused=[(read("demo://clock"), NO_SUCH), (read("DEMO://clock"), NO_SUCH)],
         lists=[("resources", lambda uri: uri != "demo://clock")]),
    dict(key="templates.deny", server="demo", conf={"templates": {"deny": ["*"]}},
         passes=[(tool("echo", text="hi"), "hi")], refused=[], lists=[("resources/templates", nothing)]),
    dict(key="templates.allow", server="everything", conf={"templates": {"allow": ["demo://resource/dynamic/text/*"]}},
         passes=[(tool("echo", message="hi"), "Echo: hi"), (listed("resources/templates"), "dynamic/text")], refused=[],
         lists=[("resources/templates", lambda name: "Text" in name)]),
    dict(key="tools.scopes", server="demo", conf={"tools": {"scopes": {"big": ["large"]}}},
         passes=[(tool("echo", text="hi"), "hi")], refused=[(tool("big", bytes=10), 403)]),
    dict(key="prompts.scopes", server="demo", conf={"prompts": {"scopes": {"greet": ["large"]}}},
         passes=[(tool("echo", text="hi"), "hi"), (listed("prompts"), "greet")], refused=[(prompt("greet", name="you"), 403)]),
    dict(key="resources.scopes", server="demo", conf={"resources": {"scopes": {"demo://clock": ["large"]}}},
         passes=[(read("demo://counter"), "counter"), (listed("resources"), "demo://clock")],
         refused=[(read("demo://clock"), 403), (read("DEMO://clock"), 403)]),
    dict(key="hide", server="demo", conf={"hide": True, "tools": {"scopes": {"big": ["large"]}},
                                          "resources": {"scopes": {"demo://clock": ["large"]}}},
         passes=[(tool("echo", text="hi"), "hi"), (listed("tools"), "echo")], refused=[(tool("big", bytes=10), 403)],
         lists=[("tools", lambda name: name != "big"), ("resources", lambda uri: uri != "demo://clock")]),
    dict(key="tools.arguments.max_bytes", server="everything", conf={"tools": {"arguments": {"max_bytes": 64}}},
         passes=[(tool("echo", message="hi"), "Echo: hi")], refused=[(tool("echo", message="x" * 80), NO_SUCH)]),
    dict(key="tools.arguments.deny_patterns", server="everything",
         conf={"tools": {"arguments": {"deny_patterns": {"*": ["(?i)drop\\s+table"]}}}},
         passes=[(tool("echo", message="the table"), "the table")],
         refused=[(tool("echo", message="; DROP  table users"), NO_SUCH)]),
    dict(key="tools.arguments.forbidden_keys", server="demo", conf={"tools": {"arguments": {"forbidden_keys": ["__proto__"]}}},
         passes=[(tool("echo", text="__proto__"), "__proto__")], refused=[(PROTO, NO_SUCH)]),
    dict(key="tools.arguments.schema", server="everything", conf={"tools": {"arguments": {"schema": "check"}}},
         passes=[(tool("echo", message="hi"), "Echo: hi"), (tool("get-sum", a=1, b=2.5), "3.5")],
         refused=[(tool("echo", message=5), NO_SUCH), (tool("echo"), NO_SUCH), (tool("get-sum", a=1, b="2"), NO_SUCH),
                  (tool("none"), NO_SUCH), (tool("Echo", message="hi"), NO_SUCH)]),
    dict(key="tools.arguments.schema of another", server="files", conf={"tools": {"arguments": {"schema": "check"}}},
         passes=[(tool("read_text_file", path="FOLDER/in/a.txt", head=1), "hello")],
         refused=[(tool("read_text_file", path="FOLDER/in/a.txt", head="1"), NO_SUCH),
                  (tool("write_file", path="FOLDER/in/new.txt", content=["x"]), NO_SUCH)], untouched="FOLDER/in/new.txt"),
    dict(key="tools.arguments.schema of the demo", server="demo", conf={"tools": {"arguments": {"schema": "check"}}},
         passes=[(tool("add", a=1, b=2), "3")], refused=[(tool("add", a=1, b=None), NO_SUCH), (tool("echo", text={}), NO_SUCH)]),
    dict(key="tools.arguments.paths.roots", server="files", conf={"tools": {"arguments": {"paths": {"roots": ["FOLDER/in"]}}}},
         passes=[(tool("read_text_file", path="FOLDER/in/a.txt"), "hello"),
                 (tool("read_text_file", path="FOLDER/in/./a.txt"), "hello")],
         refused=[(tool("read_text_file", path="FOLDER/out/secret.txt"), NO_SUCH),
                  (tool("read_text_file", path="FOLDER/in/../out/secret.txt"), NO_SUCH),
                  (tool("read_text_file", path="FOLDER/in/%2e%2e/out/secret.txt"), NO_SUCH),
                  (tool("write_file", path="FOLDER/out/new.txt", content="x"), NO_SUCH)], untouched="FOLDER/out/new.txt"),
    dict(key="tools.arguments.paths.members", server="files",
         conf={"tools": {"arguments": {"paths": {"roots": ["FOLDER/in"], "members": ["path"]}}}},
         passes=[(tool("read_text_file", path="FOLDER/in/a.txt"), "hello")],
         refused=[(tool("read_text_file", path="a.txt"), NO_SUCH), (tool("read_text_file", path="in"), NO_SUCH),
                  (tool("read_text_file", Path="a.txt"), NO_SUCH)]),
    dict(key="tools.arguments.paths and cwd", server="files",
         conf={"cwd": "FOLDER", "tools": {"arguments": {"paths": {"roots": ["FOLDER/in"], "members": ["path"]}}}},
         passes=[(tool("read_text_file", path="in/a.txt"), "hello")],
         refused=[(tool("read_text_file", path="out/secret.txt"), NO_SUCH), (tool("read_text_file", path="in/../out/secret.txt"), NO_SUCH)]),
    dict(key="tools.arguments.paths.ignore", server="files",
         conf={"tools": {"arguments": {"paths": {"roots": ["FOLDER/in"], "ignore": ["content"]}}}},
         passes=[(tool("write_file", path="FOLDER/in/note.txt", content="/etc/passwd"), "Success")],
         refused=[(tool("write_file", path="FOLDER/out/new.txt", content="x"), NO_SUCH)], untouched="FOLDER/out/new.txt"),
    dict(key="rate", server="demo", conf={"rate": {"calls": 2, "per": "1d"}},
         passes=[(tool("echo", text="one"), "one"), (tool("echo", text="two"), "two")],
         refused=[(tool("echo", text="three"), "rate_limited"), (listed("tools"), "rate_limited")]),
    dict(key="tools.limits", server="demo", conf={"tools": {"limits": [{"tools": ["echo"], "calls": 1, "per": "1d"}]}},
         passes=[(tool("echo", text="one"), "one"), (tool("add", a=1, b=2), "3")],
         refused=[(tool("echo", text="two"), "rate_limited"), (tool("Echo", text="two"), "rate_limited")]),
    dict(key="tool_timeout", server="demo", conf={"tool_timeout": {"sleep": "300ms"}},
         passes=[(tool("sleep", ms=1), "")], refused=[(tool("sleep", ms=20000), "timeout")]),
    dict(key="request_timeout", server="demo", conf={"request_timeout": "300ms"},
         passes=[(tool("sleep", ms=1), "")], refused=[(tool("sleep", ms=20000), "timeout")]),
    dict(key="limits.response", server="demo", conf={},
         passes=[(tool("big", bytes=1000), "")], refused=[(tool("big", bytes=3 << 20), "child_protocol_error")]),
    dict(key="sanitize strip", server="everything", conf={"sanitize": {"controls": "strip", "invisible": "strip"}},
         passes=[(tool("echo", message="a\x1b[31mred\x1b[0m b\u202ec\U000e0041"), "Echo: ared bc")], refused=[]),
    dict(key="sanitize mark", server="everything", conf={"sanitize": {"controls": "mark", "invisible": "mark"}},
         passes=[(tool("echo", message="a\u202eb"), "Echo: a\\u{202e}b")], refused=[]),
    dict(key="pin", server="everything", conf={"pin": "enforce"},
         passes=[(tool("echo", message="hi"), "Echo: hi"), (listed("prompts"), "simple-prompt")],
         refused=[(tool("not-there"), NO_SUCH), (prompt("not-there"), NO_SUCH)]),
    dict(key="redact", server="everything", conf={"redact": ["sk-[a-z0-9]{6,}"]},
         passes=[(tool("echo", message="key sk-abc123 end"), "Echo: key [redacted] end"), (tool("echo", message="sk-1"), "sk-1")],
         refused=[]),
]


def replace(value, folder):
    """The same with the folder's name in it."""
    return json.loads(json.dumps(value).replace("FOLDER", folder))
