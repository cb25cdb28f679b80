/* A folder seen through a slow shared file system, read-only, for measuring.
 *
 * slow_disk MOUNTPOINT -o root=FOLDER[,latency=MICROSECONDS][,stream=MB][,target=MB][,targets=N][,stripe=KB][,flaws=N][,uncached=1]
 *
 * latency  what every call costs: look-up, open, read, listing
 * stream   MB/s that one reader gets; several readers get it each
 * target   MB/s that one storage target gives to all its readers together
 * targets  how many targets there are; a file lies on one, or, with `stripe`, on all of them in turn
 * flaws    how many reads of tar files come with a wrong bit, from the first on
 */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_TARGETS 256

static struct {
    char *root;
    unsigned latency, stream, target, targets, stripe, flaws, uncached;
} asked = {.targets = 1};

static const struct fuse_opt words[] = {
    {"root=%s", offsetof(__typeof__(asked), root), 0},
    {"latency=%u", offsetof(__typeof__(asked), latency), 0},
    {"uncached=%u", offsetof(__typeof__(asked), uncached), 0},
    {"stream=%u", offsetof(__typeof__(asked), stream), 0},
    {"target=%u", offsetof(__typeof__(asked), target), 0},
    {"targets=%u", offsetof(__typeof__(asked), targets), 0},
    {"stripe=%u", offsetof(__typeof__(asked), stripe), 0},
    {"flaws=%u", offsetof(__typeof__(asked), flaws), 0},
    FUSE_OPT_END};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long busy_until[MOST_TARGETS];

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long when) {
    struct timespec t = {when / 1000000000LL, when % 1000000000LL};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void one_call(void) {
    if (asked.latency)
        sleep_until(now() + asked.latency * 1000LL);
}

/* When so many bytes will have come, for this reader and from this target. */
static long long arrival(long long begun, size_t bytes, unsigned place) {
    long long done = begun;
    if (asked.stream)
        done += (long long)bytes * 1000 / asked.stream;
    if (asked.target) {
        pthread_mutex_lock(&lock);
        long long *busy = &busy_until[place % asked.targets];
        if (*busy < begun)
            *busy = begun;
        *busy += (long long)bytes * 1000 / asked.target;
        if (*busy > done)
            done = *busy;
        pthread_mutex_unlock(&lock);
    }
    return done;
}

static int whole(char *into, const char *path) {
    return snprintf(into, PATH_MAX, "%s%s", asked.root, path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int slow_getattr(const char *path, struct stat *found, struct fuse_file_info *file) {
    char there[PATH_MAX];
    if (file)
        return fstat((int)file->fh, found) ? -errno : 0;
    one_call();
    if (whole(there, path))
        return -ENAMETOOLONG;
    return lstat(there, found) ? -errno : 0;
}

static int slow_readlink(const char *path, char *target, size_t room) {
    char there[PATH_MAX];
    one_call();
    if (whole(there, path))
        return -ENAMETOOLONG;
    ssize_t length = readlink(there, target, room - 1);
    if (length < 0)
        return -errno;
    target[length] = 0;
    return 0;
}

static int slow_readdir(const char *path, void *list, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *file, enum fuse_readdir_flags flags) {
    char there[PATH_MAX];
    (void)offset, (void)file, (void)flags;
    one_call();
    if (whole(there, path))
        return -ENAMETOOLONG;
    DIR *folder = opendir(there);
    if (!folder)
        return -errno;
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat kind = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        fill(list, entry->d_name, &kind, 0, 0);
    }
    closedir(folder);
    return 0;
}

static int slow_open(const char *path, struct fuse_file_info *file) {
    char there[PATH_MAX];
    one_call();
    if ((file->flags & O_ACCMODE) != O_RDONLY)
        return -EROFS;
    if (whole(there, path))
        return -ENAMETOOLONG;
    int opened = open(there, O_RDONLY);
    if (opened < 0)
        return -errno;
    file->fh = opened;
    /* Nodes of one computer share its memory; what one has read must not be there for the others. */
    file->direct_io = asked.uncached && strstr(path, ".tar");
    return 0;
}

static void spoil(const char *path, char *content, ssize_t size) {
    pthread_mutex_lock(&lock);
    if (asked.flaws && size > 0 && strstr(path, ".tar")) {
        asked.flaws--;
        content[size / 2] ^= 1;
    }
    pthread_mutex_unlock(&lock);
}

static int slow_read(const char *path, char *into, size_t size, off_t offset,
                     struct fuse_file_info *file) {
    long long begun = now() + asked.latency * 1000LL;
    ssize_t got = pread((int)file->fh, into, size, offset);
    if (got < 0)
        return -errno;
    spoil(path, into, got);
    struct stat found;
    unsigned place = fstat((int)file->fh, &found) ? 0 : (unsigned)found.st_ino;
    if (asked.stripe)
        place += (unsigned)(offset / (asked.stripe * 1024LL));
    sleep_until(arrival(begun, got, place));
    return (int)got;
}

static int slow_release(const char *path, struct fuse_file_info *file) {
    (void)path;
    close((int)file->fh);
    return 0;
}

static void *begin(struct fuse_conn_info *connection, struct fuse_config *settings) {
    /* One read at a time for each reader: otherwise read-ahead would make several of one. */
    connection->want &= ~FUSE_CAP_ASYNC_READ;
    settings->use_ino = 1;
    return NULL;
}

static const struct fuse_operations operations = {
    .init = begin, .getattr = slow_getattr, .readlink = slow_readlink, .readdir = slow_readdir,
    .open = slow_open, .read = slow_read, .release = slow_release};

int main(int count, char **given) {
    struct fuse_args words_given = FUSE_ARGS_INIT(count, given);
    if (fuse_opt_parse(&words_given, &asked, words, NULL) || !asked.root || !asked.targets ||
        asked.targets > MOST_TARGETS) {
        fprintf(stderr, "usage: slow_disk MOUNTPOINT -o root=FOLDER[,latency=...]\n");
        return 2;
    }
    return fuse_main(words_given.argc, words_given.argv, &operations, NULL);
}
