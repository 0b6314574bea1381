#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# includes.sh - a folder includes its own headers and those of the layers below; a foreign
# library's header is included only in that library's home.
. "$(dirname "$0")/lint.sh"

# FOLDER: what it may include. Strangers to each other are boot and device, collectives and p2p,
# the features grad, stats, ckpt and pool, and in ckpt save and load.
core="base boot device transport core"
call="$core call"
feature="$call collectives p2p feature"
declare -A may=(
    [base]="base"
    [boot]="base boot"
    [device]="base device"
    [transport]="base boot device transport"
    [host]="base boot device transport host"
    [mpi]="base boot device transport host mpi"
    [ofi]="base boot device transport host ofi"
    [core]="$core"
    [call]="$call"
    [collectives]="$call collectives"
    [p2p]="$call p2p"
    [comm]="$call p2p comm"
    [feature]="$feature"
    [field]="$feature field"
    [grad]="base boot device collectives feature grad"
    [stats]="base device feature stats"
    [pool]="base device feature pool"
    [stop]="base feature stop"
    [ckpt/format]="base field ckpt/format"
    [ckpt/plan]="base device feature stop ckpt/format ckpt/plan"
    [ckpt/folder]="base ckpt/format ckpt/plan ckpt/folder"
    [ckpt/save]="base device feature ckpt/format ckpt/plan ckpt/folder ckpt/save"
    [ckpt/load]="base feature ckpt/format ckpt/plan ckpt/folder ckpt/load"
    [ckpt]="base feature field stop ckpt/format ckpt/plan ckpt/folder ckpt/save ckpt/load ckpt"
    [tools]="base boot device transport core grad stats ckpt/format tools"
    [cuda]="base device cuda"
    [fortran]="base fortran"
)

# Sets $room: the folder of a path below src/ that has a rule, the path's own or one above it.
find_room () { # PATH
    room=${1%/*}
    while [[ $room = */* && -z ${may[$room]-} ]]; do
        room=${room%/*}
    done
}

check_own () { # FILE LINE HEADER
    local folder room
    find_room "${1#src/}"
    folder=$room

    case $3 in
    gradsync.h | config.h) ;;
    gradsync_adjoint.h | gradsync_ckpt.h | gradsync_collectives.h | gradsync_gather.h \
        | gradsync_group.h | gradsync_p2p.h | gradsync_pool.h | gradsync_reducer.h \
        | gradsync_stats.h)
        [[ $1 = src/gradsync.h ]] || complain "$1:$2" "\"$3\": gradsync.h has it"
        ;;
    ckpt/format/h5_use.h)
        [[ $1 = src/ckpt/format/h5* ]] \
            || complain "$1:$2" "\"$3\": has <hdf5.h> in it, for h5*.c only"
        ;;
    ../* | ./*) complain "$1:$2" "\"$3\": write includes from src/" ;;
    */*)
        find_room "$3"
        [[ " ${may[$folder]-} " = *" $room "* ]] \
            || complain "$1:$2" "\"$3\": $folder may include only: ${may[$folder]-nothing}"
        ;;
    *) complain "$1:$2" "\"$3\": write includes from src/, \"$folder/$3\"" ;;
    esac
}

check_foreign () { # FILE LINE HEADER
    local homes

    case $3 in
    pmix*.h) homes='src/boot/boot_pmix src/tools/bench/raw_pmix.c' ;;
    openssl/*.h) homes='src/boot/wire.c' ;;
    mpi.h) homes='src/mpi/ src/gradsync_mpi.h src/tools/bench/raw_mpi.c' ;;
    rdma/*.h) homes='src/ofi/' ;;
    cuda*.h) homes='cuda/ src/tools/bench/raw_nccl.c' ;;
    nccl*.h) homes='src/transport/coll_nccl src/tools/bench/raw_nccl.c' ;;
    hdf5*.h | H5*.h) homes='src/ckpt/format/h5' ;;
    *) return ;;
    esac
    for home in $homes; do
        [[ $1 != "$home"* ]] || return
    done
    complain "$1:$2" "<$3> may be included by $homes only"
}

while IFS=: read -r file line text; do
    if [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\"([^\"]+)\" ]]; then
        check_own "$file" "$line" "${BASH_REMATCH[1]}"
    elif [[ $text =~ \<([^\>]+)\> ]]; then
        check_foreign "$file" "$line" "${BASH_REMATCH[1]}"
    fi
done < <(sources c h cu cuh | grep -E '^(src|cuda|fortran)/' \
    | xargs grep -nE '^[[:space:]]*#[[:space:]]*include')

finish "every include points to the same layer or a lower one"
