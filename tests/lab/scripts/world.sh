#!/bin/bash
# The first process of a lab: makes the lab's own root, says "ready", and reaps orphans for ever.
# Runs in fresh pid, mount, network, host-name, ipc and cgroup namespaces; all of them end with it.
# usage: world.sh BASE CONTROLLERS [FOLDER-IN-LAB FOLDER-ON-DISK LIMITS]...
set -eu
base=$1 controllers=$2
shift 2
. "$(dirname "$0")/devices.sh"

# The machine's files are seen through an overlay: the lab may write anywhere, in memory.
mount -t tmpfs -o mode=755 lab "$base/world"
mkdir "$base/world/upper" "$base/world/work" "$base/world/root"
root=$base/world/root
mount -t overlay -o "lowerdir=/,upperdir=$base/world/upper,workdir=$base/world/work" lab "$root"

while [ $# -gt 0 ]; do
    mkdir -p "$root$1"
    if [ -n "$3" ]; then
        mount -t tmpfs -o "mode=755,$3" lab-storage "$root$1"
    else
        mount --bind "$2" "$root$1"
    fi
    shift 3
done

make_devices "$root/dev" 0
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 lab-run "$root/run"
mount -t tmpfs -o mode=1777 lab-tmp "$root/tmp"
if [ -n "$controllers" ]; then
    mount -t tmpfs -o mode=755 lab-cgroup "$root/sys/fs/cgroup"
    for controller in $controllers; do
        mkdir "$root/sys/fs/cgroup/$controller"
        mount -t cgroup -o "$controller" cgroup "$root/sys/fs/cgroup/$controller"
    done
fi

mkdir "$root/.before"
cd "$root"
pivot_root . .before
umount --lazy /.before
rmdir /.before
hostname control

echo ready
exec >/dev/null 2>&1 </dev/null
# bash waits for children it never had, which is what the first process is for.
while :; do
    sleep infinity &
    wait $! || true
done
