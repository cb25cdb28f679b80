/* The names of the files in a folder that holds nothing else. */

#include "native.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    const char *text; /* known once all are read */
    size_t at, length;
    uint64_t start; /* its first bytes, as a number that sorts like them: most names differ there */
} entry_name;

enum { START = sizeof(uint64_t) };

typedef struct {
    char *text;
    entry_name *names;
    size_t used, room, count, most;
} folder;

static uint64_t start_of(const char *text, size_t length)
{
    uint64_t start = 0;

    for (size_t place = 0; place < START; place++)
        start = start << 8 | (place < length ? (unsigned char)text[place] : 0);
    return start;
}

static int add_name(folder *into, const char *text)
{
    size_t length = strlen(text);

    if (into->used + length > into->room) {
        char *larger = realloc(into->text, into->room = 2 * into->room + length + 4096);
        if (larger == NULL)
            return 0;
        into->text = larger;
    }
    if (into->count == into->most) {
        into->most = 2 * into->most + 64;
        entry_name *larger = realloc(into->names, into->most * sizeof(entry_name));
        if (larger == NULL)
            return 0;
        into->names = larger;
    }
    memcpy(into->text + into->used, text, length);
    into->names[into->count++] = (entry_name){NULL, into->used, length, start_of(text, length)};
    into->used += length;
    return 1;
}

static int by_bytes(const void *one, const void *other)
{
    const entry_name *first = one, *second = other;
    if (first->start != second->start)
        return first->start < second->start ? -1 : 1;
    size_t both = first->length < second->length ? first->length : second->length;
    int found = memcmp(first->text, second->text, both);
    return found ? found : (first->length > second->length) - (first->length < second->length);
}

/* Reads a folder in order; 0 if that fails, or if it holds anything but plain files. */
static int read_leaf(const char *path, folder *into)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    int plain = stream != NULL;

    while (plain && (errno = 0, entry = readdir(stream)) != NULL)
        if (entry->d_type == DT_REG)
            plain = add_name(into, entry->d_name);
        else
            plain = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    plain = plain && errno == 0;
    if (stream != NULL)
        closedir(stream);
    for (size_t place = 0; place < into->count; place++)
        into->names[place].text = into->text + into->names[place].at;
    if (plain && into->count)
        qsort(into->names, into->count, sizeof(entry_name), by_bytes);
    return plain;
}

/* The names of the files in a folder, in the order of their bytes, for `rabaska_names`; how many they
   are, and how long all together. NULL if it holds anything else or cannot be read. */
EXPORTED folder *rabaska_folder(const char *path, uint64_t *count, uint64_t *length)
{
    folder *found = calloc(1, sizeof *found);

    if (found == NULL)
        return NULL;
    if (!read_leaf(path, found)) {
        free(found->text);
        free(found->names);
        free(found);
        return NULL;
    }
    *count = found->count;
    *length = found->used;
    return found;
}

/* One text of all names, each after `prefix`, and the length and crc32 of each. The folder is freed. */
EXPORTED void rabaska_names(folder *found, const char *prefix, uint64_t before, char *text,
                            uint32_t *lengths, uint32_t *crcs)
{
    for (size_t place = 0; place < found->count; place++) {
        const entry_name *one = found->names + place;
        size_t length = (size_t)before + one->length;

        memcpy(text, prefix, (size_t)before);
        memcpy(text + before, one->text, one->length);
        lengths[place] = (uint32_t)length;
        crcs[place] = crc_of(0, (unsigned char *)text, length);
        text += length;
    }
    free(found->text);
    free(found->names);
    free(found);
}

/* ---- a whole tree of folders ---- */

enum {
    DEEPEST = 128,      /* folders in folders */
    SLOW_FOLDERS = 3,   /* that keep us waiting, before somebody with threads had better look */
};

typedef struct {
    folder found; /* its folders' names end with a slash, which is where they belong in order */
    DIR *stream;
    size_t next, prefix; /* the next entry; how much of the path leads here */
} level;

typedef struct {
    level levels[DEEPEST];
    char path[PATH_MAX]; /* of the folder we are in, with a slash at its end */
    int depth, slow;
} walk;

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

/* How often this thread gave the processor away because it waited for something. */
static long waits(void)
{
#ifdef RUSAGE_THREAD
    struct rusage used;

    return getrusage(RUSAGE_THREAD, &used) ? 0 : used.ru_nvcsw;
#else
    return 0;
#endif
}

/* Look into a folder; 0 if it holds anything but files and folders, or cannot be read. */
static int enter(walk *into, int above, const char *name)
{
    static const int FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    level *here = into->levels + into->depth;
    int64_t begun = now();
    long waited = waits();
    struct dirent *entry;
    int file, plain = 1;

    if (into->depth == DEEPEST)
        return 0;
    file = above < 0 ? open(name, FLAGS & ~O_NOFOLLOW) : openat(above, name, FLAGS);
    memset(here, 0, sizeof *here);
    if (file < 0)
        return 0;
    if ((here->stream = fdopendir(file)) == NULL) {
        close(file);
        return 0;
    }
    into->depth++;
    here->prefix = strlen(into->path);
    while (plain && (errno = 0, entry = readdir(here->stream)) != NULL) {
        const char *text = entry->d_name;
        if (entry->d_type == DT_REG)
            plain = add_name(&here->found, text);
        else if (strcmp(text, ".") && strcmp(text, "..")) {
            char with_slash[NAME_MAX + 2];
            size_t length = strlen(text);
            plain = entry->d_type == DT_DIR && length <= NAME_MAX;
            if (plain) {
                memcpy(with_slash, text, length);
                memcpy(with_slash + length, "/", 2);
                plain = add_name(&here->found, with_slash);
            }
        }
    }
    if (!plain || errno)
        return 0;
    for (size_t place = 0; place < here->found.count; place++)
        here->found.names[place].text = here->found.text + here->found.names[place].at;
    if (here->found.count)
        qsort(here->found.names, here->found.count, sizeof(entry_name), by_bytes);
    into->slow += waits() > waited && now() - begun > 1000000 + 2000 * (int64_t)here->found.count;
    return into->slow < SLOW_FOLDERS;
}

static void leave(walk *from)
{
    level *here = from->levels + --from->depth;

    closedir(here->stream);
    free(here->found.text);
    free(here->found.names);
    from->path[from->depth ? from->levels[from->depth - 1].prefix : 0] = 0;
}

EXPORTED void rabaska_walk_end(walk *over)
{
    while (over->depth)
        leave(over);
    free(over);
}

/* All files below a folder in the order of their bytes, for `rabaska_walk_next`; NULL if that cannot be. */
EXPORTED walk *rabaska_walk_begin(const char *path)
{
    walk *made = calloc(1, sizeof *made);

    if (made != NULL && !enter(made, -1, path)) {
        rabaska_walk_end(made);
        return NULL;
    }
    return made;
}

/* The next files: their names one after the other, the length and crc32 of each; and the names of folders
   that were entered, each with a zero at its end. `counts`: files, bytes of names, bytes of folders.
   1 if there are more, 0 if not, -1 if there is something else than files and folders. */
EXPORTED int rabaska_walk_next(walk *over, char *text, uint64_t room, uint32_t *lengths,
                               uint32_t *crcs, int64_t most, char *folders, int64_t *counts)
{
    memset(counts, 0, 3 * sizeof *counts);
    while (over->depth) {
        level *here = over->levels + over->depth - 1;
        size_t prefix = here->prefix;

        if (here->next == here->found.count) {
            leave(over);
            continue;
        }
        const entry_name *one = here->found.names + here->next;
        size_t length = prefix + one->length;
        if (length >= PATH_MAX)
            return -1;
        if (counts[0] == most || room - (uint64_t)counts[1] < length ||
            room - (uint64_t)counts[2] < length + 1)
            return 1;
        here->next++;
        if (one->text[one->length - 1] == '/') {
            memcpy(over->path + prefix, one->text, one->length);
            over->path[length - 1] = 0;
            memcpy(folders + counts[2], over->path, length);
            counts[2] += (int64_t)length;
            char name[NAME_MAX + 1];
            memcpy(name, over->path + prefix, one->length);
            over->path[length - 1] = '/';
            over->path[length] = 0;
            if (!enter(over, dirfd(here->stream), name))
                return -1;
            continue;
        }
        memcpy(text + counts[1], over->path, prefix);
        memcpy(text + counts[1] + prefix, one->text, one->length);
        lengths[counts[0]] = (uint32_t)length;
        crcs[counts[0]++] = crc_of(0, (unsigned char *)text + counts[1], length);
        counts[1] += (int64_t)length;
    }
    return 0;
}

/* The places of numbers below a limit; how many, of `most` at most. */
EXPORTED int64_t rabaska_below(const uint32_t *numbers, int64_t count, uint32_t limit, int64_t *places,
                               int64_t most)
{
    int64_t found = 0;

    for (int64_t place = 0; place < count && found < most; place++)
        if (numbers[place] < limit)
            places[found++] = place;
    return found;
}
