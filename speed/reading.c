/* The samples of a batch, each from its place in a shard, all in one call. */

#include "speed.h"

#include <unistd.h>

typedef struct {
    int shard; /* a descriptor */
    char *room;
    size_t size;
    off_t offset;
    uint32_t crc;
    int proven; /* its whole shard was compared with its sums */
} Sample;

static int32_t label_of(const unsigned char *record)
{
    return (int32_t)(uint32_t)number(record + 56, 4);
}

/* Where a sample lies; 0 to leave it to Python. */
static int find(const unsigned char *record, const Py_buffer *opened, const Py_buffer *proven,
                size_t most, Sample *sample)
{
    uint64_t size = number(record + 8, 8), shard = number(record + 40, 4);

    if (size > most || shard >= (size_t)opened->len / sizeof(int32_t))
        return 0;
    sample->shard = ((const int32_t *)opened->buf)[shard];
    sample->size = (size_t)size;
    sample->offset = (off_t)number(record, 8);
    sample->crc = (uint32_t)number(record + 44, 4);
    sample->proven =
        shard < (size_t)proven->len && ((const unsigned char *)proven->buf)[shard] == 1;
    return sample->shard >= 0;
}

/* Find all samples and make room for them; 1 when ready, 0 to leave them to Python, -1 for an
   error. */
static int find_all(const Py_buffer *index, Py_ssize_t files, PyObject *positions,
                    const Py_buffer *opened, const Py_buffer *proven, size_t most, Sample *found,
                    PyObject *contents, PyObject *labels)
{
    const unsigned char *records = (const unsigned char *)index->buf + HEADER;

    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(positions); place++) {
        Py_ssize_t position = PyNumber_AsSsize_t(PyTuple_GET_ITEM(positions, place), NULL);
        if (position == -1 && PyErr_Occurred())
            return -1;
        if (position < 0 || position >= files ||
            !find(records + position * RECORD, opened, proven, most, found + place))
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

static int read_all(const Sample *found, Py_ssize_t count)
{
    int whole = 1;

    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t place = 0; place < count && whole; place++) {
        const Sample *one = found + place;
        /* Compared at once, while it is still in the processor's cache. */
        whole = pread(one->shard, one->room, one->size, one->offset) == (ssize_t)one->size &&
                (one->proven ||
                 crc_of(0, (const unsigned char *)one->room, one->size) == one->crc);
    }
    Py_END_ALLOW_THREADS
    return whole;
}

PyDoc_STRVAR(samples_doc,
"samples(index, files, positions, opened, most, proven) -> (contents, labels) or None\n\n"
"What the files at these positions of an index hold, and their classes. `opened` has the descriptor\n"
"of each shard as an int32, -1 for one that is not open. None, for Python to look closer, where a\n"
"position or shard is not there, a read brings less than it should or something else than was\n"
"packed, or all are over `most` bytes. Of a shard whose byte in `proven` is 1 nothing is compared.");

static PyObject *samples(PyObject *module, PyObject *arguments)
{
    Py_buffer index, opened, proven;
    PyObject *wanted, *positions = NULL, *contents = NULL, *labels = NULL, *answer = NULL;
    Py_ssize_t files, most, count;
    Sample *found = NULL;
    int ready;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*nOy*ny*:samples", &index, &files, &wanted, &opened, &most,
                          &proven))
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
    ready = find_all(&index, files, positions, &opened, &proven, (size_t)most, found, contents,
                     labels);
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
    return answer;
}

PyMethodDef of_reading[] = {
    {"samples", samples, METH_VARARGS, samples_doc},
    {NULL, NULL, 0, NULL},
};
