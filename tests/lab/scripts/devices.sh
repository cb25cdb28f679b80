# shellcheck shell=bash
# A /dev of one's own, so that no device node of the lab appears on the machine.

make_devices() { # folder, number of GPUs
    mount -t tmpfs -o mode=755,size=1m lab-dev "$1"
    mknod -m 666 "$1/null" c 1 3
    mknod -m 666 "$1/zero" c 1 5
    mknod -m 666 "$1/full" c 1 7
    mknod -m 666 "$1/random" c 1 8
    mknod -m 666 "$1/urandom" c 1 9
    mknod -m 666 "$1/tty" c 5 0
    mkdir "$1/pts" "$1/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 lab-pts "$1/pts"
    mount -t tmpfs -o mode=1777 lab-shm "$1/shm"
    ln -s pts/ptmx "$1/ptmx"
    ln -s /proc/self/fd "$1/fd"
    ln -s /proc/self/fd/0 "$1/stdin"
    ln -s /proc/self/fd/1 "$1/stdout"
    ln -s /proc/self/fd/2 "$1/stderr"
    # Slurm only asks that a card be a character device: each one is another /dev/null.
    for ((card = 0; card < $2; card++)); do
        mknod -m 666 "$1/nvidia$card" c 1 3
    done
}
