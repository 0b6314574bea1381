#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_trouble.sh - what checkpoints do on a full disk and in other trouble, on a small file
# system in memory that only this test sees.

if [[ ${1-} != inside ]]; then
    if ((EUID)) || ! unshare --mount true 2>/dev/null; then
        echo "skip: only root may mount a small file system"
        exit 77
    fi
    exec unshare --mount "$0" inside
fi

launch=${top_srcdir:?run me by make check}/tests/launch.sh
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-trouble.XXXXXX") || exit 99
trap 'umount -q "$room/files"; rm -rf "$room"' EXIT
chmod 755 "$room"

for layout in alone 2 3; do
    mkdir -p "$room/files" && mount -t tmpfs -o size=20m none "$room/files" || exit 99
    chmod 755 "$room/files"
    GS_TEST_SECONDS=60 "$launch" --live --layout "$layout" tests/multi/troubled.mt \
        "$room/files" || exit
    umount "$room/files"
done
