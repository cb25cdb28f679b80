/* The samples of a batch, each from its place in a shard, all in one call. */

#include "speed.h"

#include <sys/uio.h>
#include <unistd.h>

/* A call of the system costs as much as a few KB: neighbours come in one, with what lies between. */
enum { MOST_NEIGHBOURS = 32, GAP = 4096 };

typedef struct {
    int shard; /* a descriptor */
    char *room;
    size_t size;
    off_t offset;
    uint32_t crc;
    int proven;              /* it, or its whole shard, was compared with its sums */
    unsigned char *compared; /* where to note that it was, or NULL */
} Sample;

static int32_t label_of(const unsigned char *record)
{
    return (int32_t)(uint32_t)number(record + 56, 4);
}

/* Where a sample lies; 0 to leave it to Python. */
static int find(const unsigned char *record, const Py_buffer *opened, const Py_buffer *proven,
                unsigned char *compared, size_t most, Sample *sample)
{
    uint64_t size = number(record + 8, 8), shard = number(record + 40, 4);

    if (size > most || shard >= (size_t)opened->len / sizeof(int32_t))
        return 0;
    sample->shard = ((const int32_t *)opened->buf)[shard];
    sample->size = (size_t)size;
    sample->offset = (off_t)number(record, 8);
    sample->crc = (uint32_t)number(record + 44, 4);
    sample->compared = compared;
    sample->proven =
        (shard < (size_t)proven->len && ((const unsigned char *)proven->buf)[shard] == 1) ||
        (compared != NULL && *compared == 1);
    return sample->shard >= 0;
}

/* Find all samples and make room for them; 1 when ready, 0 to leave them to Python, -1 for an
   error. */
static int find_all(const Py_buffer *index, Py_ssize_t files, PyObject *positions,
                    const Py_buffer *opened, const Py_buffer *proven, const Py_buffer *compared,
                    size_t most, Sample *found, PyObject *contents, PyObject *labels)
{
    const unsigned char *records = (const unsigned char *)index->buf + HEADER;

    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(positions); place++) {
        Py_ssize_t position = PyNumber_AsSsize_t(PyTuple_GET_ITEM(positions, place), NULL);
        if (position == -1 && PyErr_Occurred())
            return -1;
        if (position < 0 || position >= files ||
            !find(records + position * RECORD, opened, proven,
                  position < compared->len ? (unsigned char *)compared->buf + position : NULL, most,
                  found + place))
            return 0;
        most -= found[place].size;
        PyObject *content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)found[place].size);
        if (content == NULL)
            return -1;
        PyList_SET_ITEM(contents, place, content);
        found[place].room = PyBytes_AS_STRING(content);
        PyObject *label = PyLong_FromLong(label_of(records + position * RECORD));
        if (label == NULL)
            return -1;
        PyList_SET_ITEM(labels, place, label);
    }
    return 1;
}

/* How many samples from here on lie side by side in one shard, and are read at once. */
static int neighbours(const Sample *first, Py_ssize_t left)
{
    int count = 1;

#ifdef __linux__
    for (; count < MOST_NEIGHBOURS && count < left; count++) {
        const Sample *one = first + count - 1, *next = first + count;
        off_t between = next->offset - one->offset - (off_t)one->size;
        if (next->shard != one->shard || between < 0 || between > GAP)
            break;
    }
#endif
    return count;
}

/* Whether all bytes of so many neighbours came. */
static int read_some(const Sample *first, int count)
{
    if (count == 1)
        return pread(first->shard, first->room, first->size, first->offset) ==
               (ssize_t)first->size;
#ifdef __linux__
    struct iovec parts[2 * MOST_NEIGHBOURS];
    char between[GAP]; /* what lies between two samples: the end of one block, a header of tar */
    off_t at = first->offset;

    for (int place = 0; place < count; place++) {
        const Sample *one = first + place;
        parts[2 * place] = (struct iovec){between, (size_t)(one->offset - at)};
        parts[2 * place + 1] = (struct iovec){one->room, one->size};
        at = one->offset + (off_t)one->size;
    }
    return preadv(first->shard, parts, 2 * count, first->offset) == at - first->offset;
#else
    return 0;
#endif
}

/* Whether a sample is what was packed; that it is, is noted. */
static int is_as_packed(const Sample *one)
{
    if (one->proven)
        return 1;
    if (crc_of(0, (const unsigned char *)one->room, one->size) != one->crc)
        return 0;
    if (one->compared != NULL)
        *one->compared = 1;
    return 1;
}

static int read_all(const Sample *found, Py_ssize_t count)
{
    int whole = 1, some;

    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t place = 0; place < count && whole; place += some) {
        some = neighbours(found + place, count - place);
        whole = read_some(found + place, some);
        /* Compared at once, while they are still in the processor's cache. */
        for (int next = 0; next < some && whole; next++)
            whole = is_as_packed(found + place + next);
    }
    Py_END_ALLOW_THREADS
    return whole;
}

PyDoc_STRVAR(samples_doc,
"compared_samples(index, files, positions, opened, most, proven, compared)\n"
"    -> (contents, labels) or None\n\n"
"What the files at these positions of an index hold, and their classes. `opened` has the descriptor\n"
"of each shard as an int32, -1 for one that is not open. None, for Python to look closer, where a\n"
"position or shard is not there, a read brings less than it should or something else than was\n"
"packed, or all are over `most` bytes. Of a shard whose byte in `proven` is 1 nothing is compared,\n"
"nor a sample whose byte in `compared` is 1; it becomes so once it was. Both may be shorter.");

static PyObject *samples(PyObject *module, PyObject *arguments)
{
    Py_buffer index, opened, proven, compared;
    PyObject *wanted, *positions = NULL, *contents = NULL, *labels = NULL, *answer = NULL;
    Py_ssize_t files, most, count;
    Sample *found = NULL;
    int ready;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*nOy*ny*w*:compared_samples", &index, &files, &wanted,
                          &opened, &most, &proven, &compared))
        return NULL;
    if (files < 0 || most < 0 || index.len < HEADER || files > (index.len - HEADER) / RECORD) {
        PyErr_SetString(PyExc_ValueError, "the index does not hold so many files");
        goto done;
    }
    positions = PySequence_Tuple(wanted);
    if (positions == NULL)
        goto done;
    count = PyTuple_GET_SIZE(positions);
    contents = PyList_New(count);
    labels = PyList_New(count);
    found = PyMem_New(Sample, count);
    if (contents == NULL || labels == NULL || found == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    ready = find_all(&index, files, positions, &opened, &proven, &compared, (size_t)most, found,
                     contents, labels);
    if (ready > 0 && read_all(found, count))
        answer = PyTuple_Pack(2, contents, labels);
    else if (ready >= 0) {
        answer = Py_None;
        Py_INCREF(answer);
    }
done:
    PyMem_Free(found);
    Py_XDECREF(positions);
    Py_XDECREF(contents);
    Py_XDECREF(labels);
    PyBuffer_Release(&index);
    PyBuffer_Release(&opened);
    PyBuffer_Release(&proven);
    PyBuffer_Release(&compared);
    return answer;
}

PyMethodDef of_reading[] = {
    {"compared_samples", samples, METH_VARARGS, samples_doc},
    {NULL, NULL, 0, NULL},
};
