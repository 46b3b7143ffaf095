/* Words of sentences as ids: rejoinder.text.words calls this, and says what it computes.

   Sentences are normalised before they come here, except that ASCII letters may be upper case.
   Ids are worked out without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CODE_POINTS 0x110000

enum { OTHER, LETTER, DIGIT, SPACE };

typedef struct {
    PyObject_HEAD
    PyObject *text;       /* the vocabulary as bytes: each word followed by a line feed */
    PyObject *classes;    /* bytes: a class for each code point */
    uint64_t *hashes;     /* of each slot; 0 is an empty slot */
    int32_t *slots;       /* id of each slot */
    int64_t *starts;      /* offsets of words in text, one more than words */
    size_t mask;          /* number of slots - 1 */
    int32_t words;
} Table;

static uint32_t crc_table[256];

static void make_crc_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
        crc_table[byte] = value;
    }
}

static uint32_t crc32_of(const uint8_t *text, size_t size) {
    uint32_t value = 0xFFFFFFFFu;
    for (size_t index = 0; index < size; index++)
        value = crc_table[(value ^ text[index]) & 0xFF] ^ (value >> 8);
    return value ^ 0xFFFFFFFFu;
}

static uint64_t hash_of(const uint8_t *text, size_t size) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ size, part;
    while (size >= 8) {
        memcpy(&part, text, 8);
        hash = (hash ^ part) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
        text += 8, size -= 8;
    }
    part = 0;
    memcpy(&part, text, size);
    hash = (hash ^ part) * 0xC4CEB9FE1A85EC53u;
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

static int32_t find(const Table *table, const uint8_t *text, size_t size) {
    const uint8_t *words = (const uint8_t *)PyBytes_AsString(table->text);
    uint64_t hash = hash_of(text, size);
    for (size_t slot = hash & table->mask; table->hashes[slot]; slot = (slot + 1) & table->mask) {
        if (table->hashes[slot] != hash) continue;
        int32_t id = table->slots[slot];
        size_t length = (size_t)(table->starts[id + 1] - table->starts[id] - 1);
        if (length == size && !memcmp(words + table->starts[id], text, size)) return id;
    }
    return -1;
}

/* Reads a code point of valid UTF-8 and moves past it. */
static uint32_t next_code_point(const uint8_t **at) {
    const uint8_t *p = *at;
    uint32_t first = p[0];
    if (first < 0x80) return *at += 1, first;
    if (first < 0xE0) return *at += 2, (first & 0x1F) << 6 | (p[1] & 0x3F);
    if (first < 0xF0) return *at += 3, (first & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
    return *at += 4,
           (first & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3F);
}

/* Moves past code points of a class. */
static const uint8_t *past(const uint8_t *at, const uint8_t *end, const uint8_t *classes, int kind) {
    while (at < end) {
        const uint8_t *next = at;
        uint32_t code = next_code_point(&next);
        if (code >= CODE_POINTS || classes[code] != kind) break;
        at = next;
    }
    return at;
}

/* Writes the ids of a sentence, at most one for each byte, and returns the place after them.
   An unknown word has a bucket, or -1, or is left out. */
static int32_t *add_sentence(const Table *table, const uint8_t *at, const uint8_t *end,
                             int32_t buckets, int keep_unknown, int32_t *ids) {
    const uint8_t *classes = (const uint8_t *)PyBytes_AsString(table->classes);
    while (at < end) {
        const uint8_t *start = at;
        uint32_t code = next_code_point(&at);
        int kind = code < CODE_POINTS ? classes[code] : OTHER;
        if (kind == SPACE) continue;
        if (kind == LETTER) {
            at = past(at, end, classes, LETTER);
            while (at < end && *at == '\'') {
                const uint8_t *more = past(at + 1, end, classes, LETTER);
                if (more == at + 1) break;
                at = more;
            }
        } else if (kind == DIGIT) {
            at = past(at, end, classes, DIGIT);
        }
        size_t size = (size_t)(at - start);
        int32_t id = find(table, start, size);
        if (id < 0) {
            if (buckets > 0)
                id = table->words + (int32_t)(crc32_of(start, size) % (uint32_t)buckets);
            else if (!keep_unknown)
                continue;
        }
        *ids++ = id;
    }
    return ids;
}

static PyObject *table_ids(PyObject *self, PyObject *arguments) {
    Table *table = (Table *)self;
    PyObject *sentences, *result = NULL, *ids_array = NULL, *offsets_array = NULL;
    int buckets, keep_unknown;
    if (!PyArg_ParseTuple(arguments, "O!ip:ids", &PyTuple_Type, &sentences, &buckets, &keep_unknown))
        return NULL;
    if (buckets < 0 || buckets > INT32_MAX - table->words) {
        PyErr_SetString(PyExc_ValueError, "ids: the number of buckets is out of range");
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(sentences);
    size_t total = 0, longest = 0;
    const char **texts = malloc((size_t)(count + 1) * sizeof *texts);
    int64_t *offsets = malloc((size_t)(count + 1) * sizeof *offsets);
    int32_t *ids = NULL;
    uint8_t *lower = NULL;
    if (!texts || !offsets) goto no_memory;
    for (Py_ssize_t index = 0; index < count; index++) {
        Py_ssize_t size;
        /* the UTF-8 belongs to the string, which the tuple keeps */
        texts[index] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(sentences, index), &size);
        if (!texts[index]) goto done;
        offsets[index + 1] = size;
        total += (size_t)size;
        if ((size_t)size > longest) longest = (size_t)size;
    }
    ids = malloc((total + 1) * sizeof *ids);
    lower = malloc(longest + 8);
    if (!ids || !lower) goto no_memory;
    Py_BEGIN_ALLOW_THREADS
    int32_t *end = ids;
    offsets[0] = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        const uint8_t *text = (const uint8_t *)texts[index];
        size_t size = (size_t)offsets[index + 1];
        for (size_t at = 0; at < size; at++)
            lower[at] = (uint8_t)(text[at] + ((uint8_t)(text[at] - 'A') < 26 ? 32 : 0));
        end = add_sentence(table, lower, lower + size, buckets, keep_unknown, end);
        offsets[index + 1] = end - ids;
    }
    Py_END_ALLOW_THREADS
    ids_array = PyByteArray_FromStringAndSize((char *)ids, (Py_ssize_t)(offsets[count] * 4));
    offsets_array = PyByteArray_FromStringAndSize((char *)offsets, (count + 1) * 8);
    if (ids_array && offsets_array) result = PyTuple_Pack(2, ids_array, offsets_array);
    goto done;
no_memory:
    PyErr_NoMemory();
done:
    Py_XDECREF(ids_array);
    Py_XDECREF(offsets_array);
    free(texts), free(offsets), free(ids), free(lower);
    return result;
}

static int table_init(PyObject *self, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    Table *table = (Table *)self;
    PyObject *text, *classes;
    if (table->text) {
        PyErr_SetString(PyExc_RuntimeError, "a table is filled once");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "SS", &text, &classes)) return -1;
    Py_ssize_t size = PyBytes_Size(text);
    const uint8_t *words = (const uint8_t *)PyBytes_AsString(text);
    if (PyBytes_Size(classes) != CODE_POINTS || (size && words[size - 1] != '\n') || size > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a line for each word, and 0x110000 classes, are needed");
        return -1;
    }
    int64_t count = 0;
    for (Py_ssize_t at = 0; at < size; at++) count += words[at] == '\n';
    size_t room = 16;
    while (room < 2 * (size_t)count) room *= 2;
    table->hashes = calloc(room, sizeof *table->hashes);
    table->slots = malloc(room * sizeof *table->slots);
    table->starts = malloc((size_t)(count + 1) * sizeof *table->starts);
    if (!table->hashes || !table->slots || !table->starts) {
        PyErr_NoMemory();
        return -1;
    }
    table->mask = room - 1;
    int64_t start = 0;
    for (int32_t id = 0; id < count; id++) {
        table->starts[id] = start;
        int64_t end = start;
        while (words[end] != '\n') end++;
        uint64_t hash = hash_of(words + start, (size_t)(end - start));
        size_t slot = hash & table->mask;
        while (table->hashes[slot]) slot = (slot + 1) & table->mask;
        table->hashes[slot] = hash, table->slots[slot] = id;
        start = end + 1;
    }
    table->starts[count] = start;
    table->words = (int32_t)count;
    Py_INCREF(classes), table->classes = classes;
    Py_INCREF(text), table->text = text;
    return 0;
}

static void table_dealloc(PyObject *self) {
    Table *table = (Table *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(table->text);
    Py_XDECREF(table->classes);
    free(table->hashes), free(table->slots), free(table->starts);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef table_methods[] = {
    {"ids", table_ids, METH_VARARGS, "ids(sentences, buckets, keep_unknown) -> (ids, offsets)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_init, table_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},
    {0, NULL},
};

static PyType_Spec table_spec = {
    "rejoinder.text._words.Table", sizeof(Table), 0, Py_TPFLAGS_DEFAULT, table_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_words", "Ids of words.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__words(void) {
    make_crc_table();
    PyObject *made = PyModule_Create(&module);
    PyObject *type = made ? PyType_FromSpec(&table_spec) : NULL;
    if (!type || PyModule_AddObjectRef(made, "Table", type)) {
        Py_XDECREF(type);
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(type);
    return made;
}
