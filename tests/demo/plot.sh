#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# plot.sh - the program in Python of gradsync-checkpoint(7) makes pictures of fields of a
# checkpoint, in two dimensions and in three.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}
program=$here/../../doc/examples/08-checkpoint/plot.py

for module in h5py matplotlib; do
    if ! "$python" -c "import $module" 2>/dev/null; then
        echo "skip: $python has no $module (Debian: python3-$module)"
        exit 77
    fi
done
export MPLBACKEND=Agg MPLCONFIGDIR=$room

# plot CHECKPOINT FIELD: the picture is a PNG of more than one colour.
plot () {
    "$python" "$program" "$1" "$2" "$room/picture.png" || fail "plot.py $*"
    "$python" - "$room/picture.png" <<'END' || fail "plot.py $*: the picture is empty"
import sys
import matplotlib.pyplot as plt
image = plt.imread(sys.argv[1])
inner = image[image.shape[0] // 4:image.shape[0] // 2, image.shape[1] // 4:image.shape[1] // 2]
sys.exit(len({tuple(pixel) for row in inner for pixel in row}) < 4)
END
}

plot "$here/../golden/ck-000000000042.h5" u
"$python" - "$room/cube.h5" <<'END' || fail "cannot make a file"
import sys
import h5py
import numpy as np
with h5py.File(sys.argv[1], "w") as file:
    file["gs/step"] = 7
    file["sharded/ocean/temp"] = np.arange(5 * 6 * 7, dtype="f4").reshape(5, 6, 7)
END
plot "$room/cube.h5" ocean/temp
echo "pictures of fields"
