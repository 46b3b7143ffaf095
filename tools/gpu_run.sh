#!/bin/sh
# Makes the most of a GPU that is lent for less than an hour.
#
#     tools/gpu_run.sh prepare RUN PAIRS DATA [KEY=VALUE ...]   # anywhere: vocabulary, a step
#     tools/gpu_run.sh train RUN PAIRS DATA                     # on the GPU; on the next one the same
#
# PAIRS is a folder of `rejoinder extract`, DATA that of data sets; carry them and RUN from machine
# to machine. CONFIG (transformer-best) writes a checkpoint every two minutes of an H200: a machine
# that is taken away costs no more. After MINUTES (40) of training, on all machines together, the
# model is RUN/model, and P@1 and STS-B on dev are printed.
set -eu
step=$1 run=$2 pairs=$3 data=$4
shift 4
case $step in
    prepare) set -- --config "${CONFIG:-transformer-best}" --stop-at 1 "$@" ;;
    train) set -- --resume --minutes "${MINUTES:-40}" "$@" ;;
    *) echo "usage: $0 prepare|train RUN PAIRS DATA [KEY=VALUE ...]" >&2; exit 2 ;;
esac
rejoinder train --out "$run" --pairs "$pairs" --data "$data" "$@"
