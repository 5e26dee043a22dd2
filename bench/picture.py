#!/usr/bin/env python3
"""Draws what a run of bench.py has measured (--json FILE) as an SVG: calls a second, the processor's time for a call, and
memory for a session, one bar for each target. It has a light and a dark look, by what the reader prefers.

    python3 picture.py RESULTS.json PICTURE.svg"""
import json
import statistics
import sys
from xml.sax.saxutils import escape

# Target, its name in the picture, how it is drawn.
TARGETS = [
    ("mcpgated-shared", "mcpgated, isolation: shared", "own"),
    ("mcpgated", "mcpgated, a process for each session", "own"),
    ("floor-shared", "floor, one process", "floor"),
    ("floor", "floor, a process for each session", "floor"),
    ("nginx-static", "nginx, a constant answer", "floor"),
    ("mcp-proxy", "mcp-proxy", "peer"),
    ("supergateway-stateful", "supergateway", "peer"),
]
# Title, what is better, scenario, figure, how it is written.
PANELS = [
    ("Calls a second", "more is better", "a64", "rps", lambda v: f"{v:,.0f}"),
    ("Processor time for a call, µs", "less is better", "a64", "gw_cpu_us", lambda v: f"{v:,.1f}" if v < 100 else f"{v:,.0f}"),
    ("Memory for an idle session, KiB", "less is better", "e1k", "bytes_per_stream", lambda v: f"{v / 1024:,.1f}"),
]
LABELS, PANEL, BAR, ROW, TOP, VALUE, EDGE = 250, 250, 14, 26, 64, 62, 16
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e } .title { font-weight: 600 }
.own { fill: #0969da } .floor { fill: #afb8c1 } .peer { fill: #d4a72c } .back { fill: #ffffff } .none { fill: #59636e }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small, .none { fill: #9198a1 } .own { fill: #4493f8 }
.floor { fill: #6e7681 } .peer { fill: #bb8009 } .back { fill: #0d1117 } }
"""


def figure(results, scenario, target, name):
    """The median of the rounds, or None."""
    runs = results.get(scenario, {}).get("results", {}).get(target, [])
    values = [r[name] for r in runs if isinstance(r.get(name), (int, float))]
    return statistics.median(values) if values else None


def draw(results):
    rows = [t for t in TARGETS if any(figure(results, s, t[0], f) is not None for _, _, s, f, _ in PANELS)]
    if not rows:
        sys.exit("picture: there is nothing of a64 or e1k in these results")
    width, height = EDGE + LABELS + len(PANELS) * PANEL, TOP + len(rows) * ROW + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
           "<title>Calls a second, processor time and memory of mcpgated beside other programs</title>",
           f"<style>{STYLE}</style>", f'<rect class="back" width="{width}" height="{height}"/>']
    for i, (_, label, _) in enumerate(rows):
        out.append(f'<text x="{EDGE}" y="{TOP + i * ROW + 12}">{escape(label)}</text>')
    for n, (title, better, scenario, name, write) in enumerate(PANELS):
        x = EDGE + LABELS + n * PANEL
        values = [figure(results, scenario, target, name) for target, _, _ in rows]
        most = max([v for v in values if v is not None], default=1)
        out.append(f'<text class="title" x="{x}" y="26">{escape(title)}</text><text class="small" x="{x}" y="44">{better}</text>')
        for i, value in enumerate(values):
            y = TOP + i * ROW
            if value is None:
                out.append(f'<text class="none" x="{x}" y="{y + 12}">–</text>')
                continue
            length = max(1.5, value / most * (PANEL - VALUE - EDGE))
            out.append(f'<rect class="{rows[i][2]}" x="{x}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>')
            out.append(f'<text x="{x + length + 6:.1f}" y="{y + 12}">{write(value)}</text>')
    out.append(f'<text class="small" x="{EDGE}" y="{height - 10}">64-byte echo on 64 connections, gateway and servers on one '
               "processor; medians. Floor: the least relay that works. Memory: the gateway\'s own, with an idle stream.</text>")
    return "\n".join(out) + "\n</svg>\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        text = draw(json.load(f))
    with open(sys.argv[2], "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
