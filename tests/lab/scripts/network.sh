#!/bin/bash
# One bridge, and one network namespace for each host on it. Nothing leads out of the lab.
# usage: network.sh BRIDGE_ADDRESS [HOST ADDRESS]...
set -eu
ip link set lo up
ip link add bridge0 type bridge
ip addr add "$1/24" dev bridge0
ip link set bridge0 up
shift
count=0
while [ $# -gt 0 ]; do
    count=$((count + 1))
    ip netns add "$1"
    ip link add "host$count" type veth peer name eth0 netns "$1"
    # The name is too long for a link; the alias lets a person and the lab find it.
    ip link set "host$count" alias "$1" master bridge0 up
    printf '%s\n' "addr add $2/24 dev eth0" "link set eth0 up" "link set lo up" | ip -n "$1" -batch -
    shift 2
done
