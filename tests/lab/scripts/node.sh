#!/bin/bash
# The first process of a compute node: its own host name, disk and cards, then its scheduler's part.
# usage: node.sh NAME GPUS LOCAL_LIMITS COMMAND [WORD]...
set -eu
name=$1 gpus=$2 limits=$3
shift 3
. "$(dirname "$0")/devices.sh"

hostname "$name"
make_devices /dev "$gpus"
mount -t tmpfs -o "mode=1777,$limits" lscratch /lscratch
mount -t tmpfs -o "mode=1777,$limits" lab-tmp /tmp
mount -t tmpfs -o "mode=1777,$limits" lab-tmp /var/tmp
mount -t tmpfs -o mode=755 lab-spool /var/spool/slurmd

"$@" &
# When that is killed alone the node and its jobs go on, as on a real one.
while :; do
    sleep infinity &
    wait $! || true
done
