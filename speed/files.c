/* Small files into tar form, many at once, and their records in the index. */

#include "speed.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 100, NUMBERS = 5 };

/* What a pack keeps of a mode: whether its owner may run the file. */
static int kept_mode(int64_t mode)
{
    return mode & S_IXUSR ? PROGRAM : PLAIN;
}

/* As Python counts it; what is more than 64 bits hold, wraps. */
static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)((uint64_t)time.tv_sec * (uint64_t)SECOND + (uint64_t)time.tv_nsec);
}

static void octal(char *field, int digits, uint64_t value)
{
    while (digits--) {
        field[digits] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

static void write_header(char *block, const char *name, size_t length, int64_t size, int mode)
{
    unsigned sum = 0;

    memset(block, 0, BLOCK);
    memcpy(block, name, length);
    octal(block + 100, 7, (uint64_t)mode);
    memcpy(block + 108, "0000000\0000000000", 15);
    octal(block + 124, 11, (uint64_t)size);
    octal(block + 136, 11, TIME);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memcpy(block + 329, "0000000\0000000000", 15);
    for (int place = 0; place < BLOCK; place++)
        sum += (unsigned char)block[place];
    octal(block + 148, 6, sum);
    block[154] = 0;
}

static int is_plain(const char *name, size_t length)
{
    if (length > NAME_ROOM)
        return 0;
    for (size_t place = 0; place < length; place++)
        if ((signed char)name[place] < 0)
            return 0;
    return 1;
}

/* One file at `tar`, where `room` bytes are free; how many it takes, or 0 to leave it to Python. */
static size_t take_one(PyObject *name, int flags, int64_t small, char *tar, size_t room,
                       int64_t *facts, uint32_t *crc)
{
    const char *path = PyBytes_AS_STRING(name);
    size_t length = (size_t)PyBytes_GET_SIZE(name), taken = 0, whole;
    struct stat found;
    int file;

    if (!is_plain(path, length) || (file = open(path, flags)) < 0)
        return 0;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size < small) {
#ifdef __APPLE__
        struct timespec modified = found.st_mtimespec, changed = found.st_ctimespec;
#else
        struct timespec modified = found.st_mtim, changed = found.st_ctim;
#endif
        whole = BLOCK + ((size_t)found.st_size + BLOCK - 1) / BLOCK * BLOCK;
        /* One byte more than it has, so that a file that grew shows itself. */
        if (whole + 1 <= room &&
            read(file, tar + BLOCK, (size_t)found.st_size + 1) == found.st_size) {
            size_t end = BLOCK + (size_t)found.st_size;
            write_header(tar, path, length, found.st_size, kept_mode(found.st_mode));
            memset(tar + end, 0, whole - end);
            *crc = crc_of(0, (unsigned char *)tar + BLOCK, (size_t)found.st_size);
            facts[0] = found.st_size;
            facts[1] = nanoseconds(modified);
            facts[2] = found.st_mode;
            facts[3] = (int64_t)found.st_ino;
            facts[4] = nanoseconds(changed);
            taken = whole;
        }
    }
    close(file);
    return taken;
}

PyDoc_STRVAR(take_doc,
"take(names, flags, small, room) -> (tar, used, facts, crcs)\n\n"
"The first of these files in tar form, up to `room` bytes or to one that is not an ordinary file\n"
"of less than `small` bytes; how many bytes of `tar` that are, the others mean nothing; five\n"
"numbers (int64) and a crc32 (uint32) for each.");

static PyObject *take(PyObject *module, PyObject *arguments)
{
    PyObject *given, *tar = NULL, *facts = NULL, *crcs = NULL, *answer = NULL;
    Py_ssize_t room, count, taken = 0, used = 0;
    long long small;
    int flags;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!iLn:take", &PyList_Type, &given, &flags, &small, &room))
        return NULL;
    PyObject *names = PyList_AsTuple(given); /* nobody can change that meanwhile */
    if (names == NULL)
        return NULL;
    count = PyTuple_GET_SIZE(names);
    for (Py_ssize_t place = 0; place < count; place++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(names, place))) {
            PyErr_SetString(PyExc_TypeError, "names are bytes");
            goto done;
        }
    tar = PyBytes_FromStringAndSize(NULL, room);
    facts = PyBytes_FromStringAndSize(NULL, count * NUMBERS * (Py_ssize_t)sizeof(int64_t));
    crcs = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint32_t));
    if (tar == NULL || facts == NULL || crcs == NULL)
        goto done;

    char *at = PyBytes_AS_STRING(tar);
    int64_t *numbers = (int64_t *)PyBytes_AS_STRING(facts);
    uint32_t *sums = (uint32_t *)PyBytes_AS_STRING(crcs);
    Py_BEGIN_ALLOW_THREADS
    for (; taken < count; taken++) {
        size_t step = take_one(PyTuple_GET_ITEM(names, taken), flags, small, at + used,
                               (size_t)(room - used), numbers + taken * NUMBERS, sums + taken);
        if (step == 0)
            break;
        used += (Py_ssize_t)step;
    }
    Py_END_ALLOW_THREADS

    /* What is nearly full is handed over as it is: the allocator gives the same memory again, which
       is still in the cache, while it would ask the system for a new size each time. */
    if ((used >= room / 2 || _PyBytes_Resize(&tar, used) == 0) &&
        _PyBytes_Resize(&facts, taken * NUMBERS * (Py_ssize_t)sizeof(int64_t)) == 0 &&
        _PyBytes_Resize(&crcs, taken * (Py_ssize_t)sizeof(uint32_t)) == 0)
        answer = Py_BuildValue("OnOO", tar, used, facts, crcs);
done:
    Py_DECREF(names);
    Py_XDECREF(tar);
    Py_XDECREF(facts);
    Py_XDECREF(crcs);
    return answer;
}

/* ---- the index ---- */

static char *put(char *at, uint64_t value, int bytes)
{
    for (int byte = 0; byte < bytes; byte++)
        *at++ = (char)(value >> (8 * byte));
    return at;
}

PyDoc_STRVAR(records_doc,
"records(lengths, facts, crcs, labels, header, offset, names_at) -> bytes\n\n"
"The index records of files that follow one another from `offset` in their shard, each after a\n"
"header of so many bytes. Lengths of names (uint32), facts (int64) and crcs (uint32) are buffers\n"
"as `take` gives them; labels are int32.");

static PyObject *records(PyObject *module, PyObject *arguments)
{
    Py_buffer lengths, facts, crcs, labels;
    unsigned long long header, offset, names_at;
    PyObject *answer = NULL;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*KKK:records", &lengths, &facts, &crcs, &labels,
                          &header, &offset, &names_at))
        return NULL;
    Py_ssize_t count = crcs.len / 4;
    if (lengths.len != count * 4 || labels.len != count * 4 || facts.len != count * NUMBERS * 8)
        PyErr_SetString(PyExc_ValueError, "the columns are not equally long");
    else
        answer = PyBytes_FromStringAndSize(NULL, count * RECORD);
    if (answer != NULL) {
        char *at = PyBytes_AS_STRING(answer);
        const int64_t *fact = facts.buf;
        for (Py_ssize_t place = 0; place < count; place++, fact += NUMBERS) {
            uint64_t size = (uint64_t)fact[0];
            uint32_t length = ((const uint32_t *)lengths.buf)[place];
            at = put(at, offset + header, 8);
            at = put(at, size, 8);
            at = put(at, (uint64_t)TIME * (uint64_t)SECOND, 8);
            at = put(at, names_at, 8);
            at = put(at, length, 4);
            at = put(at, 0, 8); /* no target, no shard yet */
            at = put(at, ((const uint32_t *)crcs.buf)[place], 4);
            at = put(at, (uint64_t)kept_mode(fact[2]), 4);
            at = put(at, 0, 4); /* a file */
            at = put(at, (uint64_t)((const int32_t *)labels.buf)[place], 4);
            at = put(at, 0, 4);
            offset += header + (size + BLOCK - 1) / BLOCK * BLOCK;
            names_at += length;
        }
    }
    PyBuffer_Release(&lengths);
    PyBuffer_Release(&facts);
    PyBuffer_Release(&crcs);
    PyBuffer_Release(&labels);
    return answer;
}

PyMethodDef of_files[] = {
    {"take", take, METH_VARARGS, take_doc},
    {"records", records, METH_VARARGS, records_doc},
    {NULL, NULL, 0, NULL},
};
