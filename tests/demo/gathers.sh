#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# gathers.sh - the examples of gradients through gathers: training on 8 ranks is that on one with
# the joined batch, and that of PyTorch's autograd; the table of gradsync-adjoint(7) is what
# contracts says.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}

# train NAME LAYOUT [ARGUMENT]...: the parameters that contrastive ends with, in $room/NAME.
train () {
    launch "$2" 07-infonce/contrastive --parameters "${@:3}"
    grep -v '^step' "$room/output" >"$room/$1"
}

# Whether the parameters in two files differ by at most 1e-10 of the largest.
agree () { # FILE FILE
    paste "$room/$1" "$room/$2" | awk '
        function abs (x) { return x < 0 ? -x : x }
        { if (abs ($1 - $2) > off) off = abs ($1 - $2)
          if (abs ($1) > most) most = abs ($1) }
        END { print "differ by " off / most " of the largest"
              exit !(NR == 49 && off <= 1e-10 * most) }'
}

train one 1
train eight 8
agree one eight || fail "8 ranks, adjoint"
train common 8 --common
agree one common || fail "8 ranks, the whole loss on each, adjoint"
train slot 8 --common --own-slot
agree one slot || fail "8 ranks, the whole loss on each, own slot"
train wrong 8 --own-slot
! agree one wrong || fail "8 ranks, own loss, own slot: that cannot be right"

# What does not hold is found out.
"$here/../launch.sh" --live --layout "2 GS_CHECK=collective" "$examples/07-infonce/contrastive" \
    --own-slot >"$room/output" 2>&1 && fail "own slot of own losses passed GS_CHECK=collective"
grep -q 'GS_GRAD_OWN_SLOT is not the gradient' "$room/output" || fail "$(<"$room/output")"
launch "2 GS_CHECK=collective" 07-infonce/contrastive --common --own-slot

if "$python" -c 'import torch' 2>/dev/null; then
    "$python" "$here/autograd.py" "$room/eight" || fail "PyTorch comes to other parameters"
else
    echo "no torch for $python: not compared with autograd"
fi

launch 4 07-infonce/contracts
sed 's/\\-/-/g' "$here/../../doc/man/gradsync-adjoint.7" >"$room/page"
while IFS= read -r line; do
    grep -qxF -- "$line" "$room/page" || fail "not in gradsync-adjoint(7): $line"
done <"$room/output"
