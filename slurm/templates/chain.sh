#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# chain.sh - submits a run as jobs that follow each other, where sites do not requeue.
#
#   ./chain.sh 5 --signal=USR1@300 [SBATCH-OPTION]... plain.sbatch ./simulation input.nml
#
# Each job starts when the one before has ended well, and continues from its checkpoint. When
# one fails the rest is cancelled. On the signal, 300 s before the time limit, the program writes
# a checkpoint and ends with status 0, as requeue.sbatch describes; it needs no NOT_FINISHED. It
# should end well, at once, if nothing is left to do.

if [[ ! ${1-} =~ ^[1-9][0-9]?$ ]] || (($# < 2)); then
    echo "usage: chain.sh JOBS [SBATCH-OPTION]... SCRIPT [ARGUMENT]..." >&2
    exit 2
fi
jobs=$1
shift

id=''
for ((i = 1; i <= jobs; i++)); do
    id=$(sbatch --parsable --kill-on-invalid-dep=yes ${id:+--dependency=afterok:"$id"} "$@") \
        || exit
    id=${id%;*} # without the cluster's name
    if [[ ! $id =~ ^[0-9]+$ ]]; then
        echo "chain.sh: sbatch said '$id', not a job's number" >&2
        exit 1
    fi
    echo "job $i of $jobs: $id"
done
