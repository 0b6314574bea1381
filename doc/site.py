# SPDX-License-Identifier: BSD-3-Clause
"""site - what mkdocs.yml adds to the files in doc: pages from elsewhere in the tree, the manual as
groff formats it, and formulas as MathML."""
import functools
import html
import os
import pathlib
import posixpath
import re
import subprocess

from latex2mathml.converter import convert
from mkdocs.structure.files import File

TOP = pathlib.Path(__file__).resolve().parents[1]
# Files outside of doc, and where the site has them.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "slurm/README.md": "slurm.md",
    "CITATION.cff": "CITATION.cff",
    "LICENSE": "LICENSE.txt",
}
BACK = {page: path for path, page in ELSEWHERE.items()}


def pages():
    """The manual: name with section, and the page that has it."""
    found = {}
    for path in sorted((TOP / "doc/man").glob("*.[137]")):
        first = path.read_text().split("\n", 1)[0]
        found[path.name] = first.split("/")[-1] if first.startswith(".so ") else path.name
    return found


@functools.cache
def formatted(name):
    """A page of the manual as HTML, with links to the others it names."""
    environment = dict(os.environ, MANWIDTH="90", LC_ALL="C.UTF-8", GROFF_NO_SGR="1")
    text = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-P-c", "-rLL=90n", f"doc/man/{name}"],
                          cwd=TOP, env=environment, check=True, capture_output=True,
                          text=True).stdout
    text = re.sub(r"(.)\x08\1", r"\1", re.sub(r"_\x08(.)", r"\1", text))
    known = pages()

    def link(match):
        target = known.get(f"{match[1]}.{match[2]}")
        return f'<a href="../{target}/">{match[0]}</a>' if target and target != name else match[0]

    text = re.sub(r"\b(gs[-_a-z]+|gradsync[-a-z]*)\(([137])\)", link, html.escape(text.strip()))
    return f"# {name[:-2]}({name[-1]})\n\n<pre>\n{text}\n</pre>\n"


def index_of_manual():
    known, lines = pages(), ["# Manual", ""]
    for section, title in (("7", "Guides"), ("1", "Programs"), ("3", "Functions")):
        lines += [f"## {title}", "", ", ".join(
            f"[{name[:-2]}]({target}.md)" for name, target in known.items()
            if name.endswith(section)), ""]
    return "\n".join(lines)


def on_files(files, config):
    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(TOP / path).read_text()))
    for name, target in pages().items():
        if name == target:
            files.append(File.generated(config, f"man/{name}.md", content=formatted(name)))
    files.append(File.generated(config, "man/index.md", content=index_of_manual()))
    return files


def where(target):
    """The page of the site that has a file of the tree, or None."""
    if target in ELSEWHERE:
        return ELSEWHERE[target]
    if target.startswith("doc/man/"):
        name = pages().get(target[8:])
        return name and f"man/{name}.md"
    return target[4:] if target.startswith("doc/") and (TOP / target).is_file() else None


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    folder = posixpath.dirname(BACK.get(source, "doc/" + source))
    here = posixpath.dirname(source)

    def link(match):
        path, _, anchor = match[2].partition("#")
        if re.match(r"[a-z]+:|$", path) or source.startswith("man/"):
            return match[0]
        target = where(posixpath.normpath(posixpath.join(folder, path)))
        if not target:
            return match[1] # text alone: a file that the site does not have
        target = posixpath.relpath(target, here or ".")
        return f"[{match[1]}]({target}{'#' + anchor if anchor else ''})"

    def formula(match):
        return convert(match[1].strip(), display="block")

    markdown = re.sub(r"```math\n(.*?)```", formula, markdown, flags=re.S)
    return re.sub(r"(?<!`)\[([^]\[]*)\]\(([^) ]*)\)", link, markdown)
