#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-info --layout tells which way a job would take with these settings, and what to type for it.
. "$(dirname "$0")/lib.sh"

# without NAME...: no line of the last run tells of these.
without () {
    for name; do
        ! grep -q "^  $name  " "$work/out" || fail "there is a line '$name'"
    done
}

# One GPU for each rank.
run 0 ./gs-info --layout 2x4x4
quiet err
says out '^8 ranks: 2 nodes of 4 ranks and 4 GPUs$'
says out '^  transport  *nccl$'
says out '^  reason  *each rank has a GPU$'
says out '^  GPU 3  *rank 3 of a node$'
says out '^  sums  *by NCCL between 8 ranks$'
says out '^  type  *srun --mpi=pmix --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 \./program$'
says out '^  not  *--gpus-per-task, --ntasks-per-gpu, --gpu-bind: .*NCCL may not copy directly'
without others idle mps

# More ranks than GPUs, the same for each GPU.
run 0 ./gs-info --layout 2x16x4
quiet err
says out '^  transport  *nccl$'
says out '^  reason  *several ranks share a GPU$'
says out '^  GPU 0  *ranks 0 4 8 12 of a node, 4 in all; rank 0 leads$'
says out '^  GPU 3  *ranks 3 7 11 15 of a node, 4 in all; rank 3 leads$'
says out '^  sums  *on each GPU, .*by NCCL between 8 leaders, 4 on each node$'
says out '^  others  .*by way of the hosts, by transport mpi,'
says out '^  mps  *lets the 4 ranks of a GPU work at once, .*nvidia-cuda-mps-control -d'
says out '^  type .* --nodes=2 --ntasks-per-node=16 --gpus-per-node=4 \./program$'
without idle

# Uneven groups, of which some have one rank; one GPU, so there is nobody to join by NCCL.
run 0 ./gs-info --layout 1x6x4
says out '^6 ranks: 1 node of 6 ranks and 4 GPUs$'
says out '^  GPU 1  *ranks 1 5 of a node, 2 in all; rank 1 leads$'
says out '^  GPU 2  *rank 2 of a node, 1 in all; rank 2 leads$'
says out '^  sums  .*by NCCL between 4 leaders, 4 on each node$'
says out '^  mps  *lets the 2 ranks'
run 0 ./gs-info --layout 1x2x1
says out '^  sums  *on the GPU, in rank order, without NCCL$'
says out '^  not  *--gpus-per-task: it asks for as many GPUs as ranks$'
run 0 ./gs-info --layout 1x60x1
says out '^  GPU 0  *ranks 0 1 2 3 4 5 6 \.\.\. 59 of a node, 60 in all; rank 0 leads$'
says out '^  mps  *has room for 48 ranks of a GPU, not for 60'

# Fewer ranks than GPUs, and none of either.
run 0 ./gs-info --layout 2x2x4
says out '^  reason  *each rank has a GPU$'
says out '^  idle  *GPUs 2, 3 of each node: start 4 ranks on a node, or ask for 2 GPUs$'
run 0 ./gs-info --layout 3x1x1
says out '^  sums  *by NCCL between 3 ranks$'
without not # nobody on the node to hide from
run 0 ./gs-info --layout 2x4x0
says out '^  transport  *mpi$'
says out '^  reason  *several ranks, the nodes have no GPUs$'
says out '^  sums  *between hosts: gs-info --hosts 2x4 tells how$'
says out '^  type  *srun --mpi=pmix --nodes=2 --ntasks-per-node=4 \./program$'
without others idle mps not
run 0 ./gs-info --layout 1x1x0
says out '^  transport  *self$'
without sums

# With other settings.
GS_GPU_SHARING=never run 0 ./gs-info --layout 2x3x2
says out '^  transport  *mpi$'
says out '^  reason  *ranks 0 and 2 \(host n0\) would share the GPU 0000:01:00, '
says out '^  idle  *GPUs 0, 1 of each node: no rank takes one'
without mps not
GS_GPU_SHARING=always run 0 ./gs-info --layout 2x2x2
says out '^  GPU 1  *rank 1 of a node, 1 in all; rank 1 leads$'
says out '^  sums  .*by NCCL between 4 leaders, 2 on each node$'
without mps
GS_DETERMINISTIC=1 run 0 ./gs-info --layout 2x3x2
says out '^  GPU 0  *ranks 0 2 of a node$'
says out '^  sums  *by way of the hosts: GS_DETERMINISTIC is set$'
GS_DEVICE=1 run 0 ./gs-info --layout 2x3x2
says out '^  GPU 1  *ranks 0 1 2 of a node, 3 in all; rank 0 leads$'
says out '^  idle  *GPU 0 of each node: '
GS_DEVICE=host run 0 ./gs-info --layout 2x3x2
says out '^  transport  *mpi$'
GS_TRANSPORT=ofi run 0 ./gs-info --layout 2x3x2
says out '^  transport  *ofi$'

# Jobs that would fail.
GS_TRANSPORT=nccl GS_GPU_SHARING=never run 1 ./gs-info --layout 2x3x2
quiet out
says err '^gs-info: ranks 0 and 2 \(host n0\) would share the GPU'
GS_TRANSPORT=nccl run 1 ./gs-info --layout 2x3x0
says err '^gs-info: --layout: transport nccl was asked for, but the nodes have no GPUs$'
GS_DEVICE=7 run 1 ./gs-info --layout 2x3x2
says err '^gs-info: rank 0 \(host n0\) asks for GPU 7, but sees 2'
GS_TRANSPORT=nccl GS_DEVICE=host run 1 ./gs-info --layout 2x3x2 --json
quiet out
says err '^gs-info: --layout: transport nccl needs a GPU'
GS_GPU_SHARING=perhaps run 1 ./gs-info --layout 2x3x2
says err "^gs-info: GS_GPU_SHARING='perhaps' is not one of"

# JSON has the same, and all ranks of a GPU.
run 0 ./gs-info --json --layout 2x3x2
quiet err
gpu='\{"gpu":[01],"ranks":\[[0-9,]*\],"leader":[01]\}'
only out "^\{\"nodes\":2,\"ranks\":3,\"gpus\":\[$gpu,$gpu\](,\"[a-z]*\":\"[^\"]*\")*\}\$"
says out '"gpus":\[\{"gpu":0,"ranks":\[0,2\],"leader":0\},\{"gpu":1,"ranks":\[1\],"leader":1\}\]'
for word in transport reason sums others mps type not; do
    says out "\"$word\":\"[^\"]+\""
done
run 0 ./gs-info --layout 1x2x4 --json
says out '\{"gpu":1,"ranks":\[1\]\},\{"gpu":2,"ranks":\[\]\}'
says out '"idle":"GPUs 2, 3 '

# The largest, and what is no layout.
run 0 ./gs-info --layout 64x1024x16
says out '^65536 ranks: 64 nodes '
run 2 ./gs-info --layout
says err '^gs-info: --layout: needs a LAYOUT'
for layout in 2 2x2 0x2x2 2x0x2 2x2x 2x2x2x2 x 2x2x17 1x1025x1 65537x1x1 2x-2x2 2x2x02 2x2x2+2 \
    99999999999999999999x1x1; do
    run 2 ./gs-info --layout "$layout"
    quiet out
    says err "^gs-info: $(echo "$layout" | sed 's/+/[+]/'): is no layout: give NODESxRANKSxGPUS"
done
run 2 ./gs-info --layout 2x2x2 --record file
says err '^gs-info: --layout: cannot be had with --record$'
run 2 ./gs-info --layout 2x2x2 --hosts 2x2
says err '^gs-info: --layout: cannot be had with --hosts$'
run 2 ./gs-info --layout 2x2x2 --nccl
says err '^gs-info: --nccl: stands alone$'
run 2 ./gs-info --layout 2x2x2 file
says err '^gs-info: file: a FILE is taken with --record only$'
finish
