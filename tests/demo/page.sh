#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# page.sh - demo --html leaves one page that needs no other file, with both pictures, the numbers
# and the command; a browser, where there is one, shows it. --live writes over one line.
. "$(dirname "$0")/lib.sh"
demo=$examples/10-lorenz96/lorenz96_demo
python=${PYTHON:-/usr/bin/python3}
words=(--train-steps 60 --run-time 2)
export GS_TEST_SECONDS=120

launch 2 10-lorenz96/lorenz96_demo "${words[@]}" --html --out "$room/a&b"
page="$room/a&b/demo.html"
[[ $(grep -c '<svg ' "$page") = 2 && $(grep -c '</svg>' "$page") = 2 ]] || fail "not two pictures"
for text in '>ranks</td><td>2<' 'backward, layer 1' "mpirun -n 2 .*lorenz96_demo ${words[*]}" \
    'a&amp;b'; do
    grep -q "$text" "$page" || fail "no '$text' in the page"
done
network=$(sed -nE 's/^Held-out R2: network +([0-9.]+),.*/\1/p' "$room/output")
grep -q "R2).*>$network<" "$page" || fail "R2 is $network, but not on the page"
! grep -nE '(src|href) *=|url\(|@import' "$page" || fail "the page needs another file"
! grep -nE 'NaN|Infinity|\*\*' "$page" || fail "the page has numbers that are none"
if command -v "$python" >/dev/null; then
    "$python" - "$page" <<'END' || fail "the page is not well-formed"
import sys
import xml.etree.ElementTree
text = open(sys.argv[1], encoding="utf-8").read()
assert text.startswith("<!DOCTYPE html>")
page = xml.etree.ElementTree.fromstring(text.partition("\n")[2])
bars = [e for e in page.iter("{http://www.w3.org/2000/svg}g")]
assert len(bars) >= 7, "a bucket, and the phases of a step"
END
fi

"$here/../timeout" 60 env GS_BOOT=single "$demo" "${words[@]}" --live --out "$room/live" \
    >"$room/live.txt" || fail "--live fails: $(cat "$room/live.txt")"
tr '\r' '\n' <"$room/live.txt" | grep -qE '^\[ *[0-9.]+ s\] step [0-9]+ of 60, .*hidden.*left' \
    || fail "no line that is written over: $(cat "$room/live.txt")"
! tr '\r' '\n' <"$room/live.txt" | grep '^\[.* step ' | grep -v training | grep -qE '.{80}' \
    || fail "a line that a terminal would break"

for browser in chromium chromium-browser google-chrome; do
    command -v "$browser" >/dev/null && break
    browser=''
done
if [[ -z $browser ]]; then
    echo "the page was not opened: there is no Chromium"
    exit 0
fi
view () { # OPTION...
    HOME=$room "$here/../timeout" 120 "$browser" --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --user-data-dir="$room/profile" --window-size=1200,2000 \
        --virtual-time-budget=5000 "$@" "file://$page" 2>"$room/browser.txt"
}
view --dump-dom >"$room/dom" || fail "$browser: $(tail -n 5 "$room/browser.txt")"
grep -q '<title>gradsync: a closure' "$room/dom" || fail "$browser does not show the page"
[[ $(grep -o '<svg ' "$room/dom" | wc -l) = 2 ]] || fail "$browser does not see two pictures"
view --screenshot="$room/page.png" >/dev/null || fail "$browser: $(tail -n 5 "$room/browser.txt")"
(($(stat -c %s "$room/page.png" || echo 0) > 50000)) || fail "$browser shows hardly anything"
echo "$browser shows the page"
