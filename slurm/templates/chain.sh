#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# chain.sh - submits a run as jobs that follow each other, where sites do not requeue.
#
#   REQUEUE=no ./chain.sh 5 [SBATCH-OPTION]... requeue.sbatch ./simulation input.nml
#
# Each job starts when the one before has ended well, and continues from its checkpoint. When
# one fails the rest is cancelled. What the program does is told in requeue.sbatch. If nothing is
# left to do, it should end well, at once.
#
# For a program that ends with status 0 though it is not finished, other scripts do as well:
#   ./chain.sh 5 --signal=USR1@180 [SBATCH-OPTION]... plain.sbatch ./simulation input.nml

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
