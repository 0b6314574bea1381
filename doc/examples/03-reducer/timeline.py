#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""timeline - draws the reports of gs_reducer_report: when gradients were ready and travelled in the
last step.

usage: timeline.py TITLE=REPORT... >PICTURE.svg
"""
import json
import sys

LEFT, WIDTH, ROW, TOP = 120, 560, 22, 44
READY, TRAVEL, WAIT, INK = "#4477aa", "#66aa55", "#cc6644", "#222"


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def bar(x, y, width, color):
    return f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" height="14" fill="{color}"/>'


def main():
    runs = []
    for word in sys.argv[1:]:
        title, path = word.split("=", 1)
        lines = [json.loads(line) for line in open(path)]
        runs.append((title, lines[0], [line for line in lines if "bucket" in line]))
    end = max(bucket["end_us"] for _, _, buckets in runs for bucket in buckets)
    scale = WIDTH / end
    out, y = [], 20
    for x, color, words in ((LEFT, READY, "gradients become ready"), (290, TRAVEL, "travels"),
                            (370, WAIT, "travels, and the program waits")):
        out += [bar(x, y - 11, 14, color), text(x + 18, y, words)]
    y = TOP
    for title, total, buckets in runs:
        out.append(text(8, y + 12, f"{title}: {total['step_us'] / 1000:.1f} ms for each step, "
                        f"{total['exposed_us'] / 1000:.1f} ms of it waiting", size=13))
        y += ROW
        before = 0
        for bucket in buckets:
            at = {key: LEFT + bucket[key + "_us"] * scale for key in ("ready", "begin", "end")}
            wait = min(bucket["exposed_us"], bucket["end_us"] - bucket["begin_us"]) * scale
            out.append(text(LEFT - 8, y + 12, f"{bucket['bytes'] / 2**20:.0f} MiB", "end"))
            out.append(bar(LEFT + before, y, at["ready"] - LEFT - before, READY))
            out.append(bar(at["begin"], y, at["end"] - at["begin"] - wait, TRAVEL))
            if wait:
                out.append(bar(at["end"] - wait, y, wait, WAIT))
            before = at["ready"] - LEFT
            y += ROW
        y += ROW // 2
    for ms in range(int(end / 1000) + 1):
        out.append(text(LEFT + ms * 1000 * scale, y + 4, ms, "middle", 11))
    out.append(text(LEFT + WIDTH, y + 20, f"ms since the first gradient; rank 0 of "
                    f"{runs[0][1]['ranks']}", "end", 11))
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" '
          f'height="{y + 30}" font-family="sans-serif" fill="{INK}">')
    print('<rect width="100%" height="100%" fill="white"/>')
    print("\n".join(out))
    print("</svg>")


if __name__ == "__main__":
    main()
