#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pdf - the guide as one PDF, from the site that mkdocs has built: chapters in the order of the
site, with links between them.

    python3 doc/pdf.py build/site gradsync-guide.pdf

Needs mkdocs, which has built the site, and Chromium, which prints it: exit status 77 without."""
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile

from mkdocs.config import load_config

TOP = pathlib.Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
@page { size: A4; margin: 20mm 18mm }
body { font: 10.5pt/1.45 "DejaVu Sans", "Liberation Sans", sans-serif }
h1 { break-before: page; font-size: 20pt }
h2 { font-size: 14pt; margin-top: 1.6em }
h3 { font-size: 12pt }
h1, h2, h3 { break-after: avoid; line-height: 1.2 }
.title { margin-top: 60mm; break-before: avoid; font-size: 34pt }
pre, code { font: 9pt/1.35 "DejaVu Sans Mono", "Liberation Mono", monospace }
pre { background: #f5f5f5; padding: 2.5mm; white-space: pre-wrap; overflow-wrap: anywhere }
table { border-collapse: collapse; font-size: 9pt; width: 100% }
td, th { border: 0.3pt solid #999; padding: 1mm 2mm; text-align: left; vertical-align: top }
td, li, p { overflow-wrap: anywhere }
tr, img, svg { break-inside: avoid }
img { max-width: 100% }
a { color: #303f9f; text-decoration: none }
nav li { list-style: none; margin: 0.6mm 0 }
"""


def chapters(nav, wanted=False):
    """The pages of the guide in the order of mkdocs.yml, as names below guide/."""
    for entry in nav:
        title, item = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(item, list):
            yield from chapters(item, wanted or title == "Guide")
        elif wanted:
            yield posixpath.splitext(posixpath.basename(item))[0]


def page_of(name):
    return "guide" if name == "index" else f"guide/{name}"


def article(site, name, known):
    """A chapter, with links inside the book where it has what they lead to, and else none."""
    folder = page_of(name)
    text = (site / folder / "index.html").read_text(encoding="utf-8")
    text = re.search(r"<article[^>]*>(.*?)</article>", text, re.S)[1]
    text = re.sub(r'<a class="headerlink".*?</a>|<button.*?</button>', "", text, flags=re.S)
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = text.replace("<h1", f'<h1 class="chapter"', 1)

    def link(match):
        target, _, anchor = match[1].partition("#")
        if re.match("[a-z]+:", target):
            return match[0]
        place = posixpath.normpath(posixpath.join(folder, target)) if target else folder
        if place not in known:
            return match[2]
        return f'<a href="#{known[place]}{"-" + anchor if anchor else ""}">{match[2]}</a>'

    def image(match):
        return f'src="{(site / folder / match[1]).resolve().as_uri()}"'

    text = re.sub(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', link, text, flags=re.S)
    return re.sub(r'src="(?![a-z]+:)([^"]*)"', image, text)


def book(site, config):
    names = list(chapters(config.nav))
    known = {page_of(name): name for name in names}
    version = re.search(r"gs_version\], \[(.*?)\]", (TOP / "configure.ac").read_text())[1]
    texts = [article(site, name, known) for name in names]
    lines = ["<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>",
             f"<title>gradsync {version}: the guide</title><style>{STYLE}</style></head><body>",
             f"<h1 class='title'>gradsync</h1><p>The guide to version {version}</p>",
             "<h1>Contents</h1><nav><ul>"]
    for name, text in zip(names, texts):
        title = re.search(r"<h1[^>]*>(.*?)</h1>", text, re.S)[1]
        lines.append(f'<li><a href="#{name}">{re.sub("<.*?>", "", title)}</a></li>')
    lines.append("</ul></nav>")
    for name, text in zip(names, texts):
        lines.append(f'<section id="{name}">{text}</section>')
    return "\n".join(lines + ["</body></html>"])


def main(site, pdf):
    site = pathlib.Path(site).resolve()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        print(f"pdf: no browser to print with: install Chromium ({', '.join(BROWSERS)})")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as room:
        page = pathlib.Path(room, "guide.html")
        page.write_text(book(site, load_config(str(TOP / "mkdocs.yml"))), encoding="utf-8")
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={room}/profile", "--no-pdf-header-footer",
             f"--print-to-pdf={pathlib.Path(pdf).resolve()}", page.as_uri()],
            capture_output=True, text=True, timeout=120, check=False)
        if done.returncode or not pathlib.Path(pdf).exists():
            sys.exit(f"pdf: {browser} does not print:\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
