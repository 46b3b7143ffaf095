/* Columns of strings as Arrow lays them out, and their strings by column and row. */
typedef struct {
    Py_buffer content, ends;
} Column;

typedef struct {
    Column *columns;
    Py_ssize_t count;
} Columns;

static void release(Columns *columns) {
    for (Py_ssize_t index = 0; index < columns->count; index++) {
        PyBuffer_Release(&columns->columns[index].content);
        PyBuffer_Release(&columns->columns[index].ends);
    }
    free(columns->columns);
    columns->columns = NULL, columns->count = 0;
}

/* Takes the buffers of a list of (content, ends). */
static int columns_of(PyObject *list, Columns *columns) {
    Py_ssize_t count = PyList_Size(list);
    columns->count = 0;
    columns->columns = calloc(count ? (size_t)count : 1, sizeof(Column));
    if (!columns->columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        Column *column = columns->columns + index;
        PyObject *pair = PyList_GetItem(list, index);
        if (!pair || !PyArg_ParseTuple(pair, "y*y*", &column->content, &column->ends)) {
            release(columns);
            return -1;
        }
        columns->count = index + 1;
    }
    return 0;
}

typedef struct {
    const uint8_t *start;
    size_t size;
} String;

#define NO_STRING SIZE_MAX

/* Returns a string without a prefix of three bytes; its size is NO_STRING outside of a column. */
static String string_at(const Columns *columns, uint32_t which, uint32_t row, const char *prefix) {
    String none = {NULL, NO_STRING};
    if ((Py_ssize_t)which >= columns->count) return none;
    const Column *column = columns->columns + which;
    const int64_t *ends = column->ends.buf;
    if ((Py_ssize_t)row + 1 >= column->ends.len / 8) return none;
    if (ends[row] < 0 || ends[row + 1] < ends[row] || ends[row + 1] > column->content.len) return none;
    String found = {(const uint8_t *)column->content.buf + ends[row], (size_t)(ends[row + 1] - ends[row])};
    if (prefix[0] && found.size >= 3 && found.start[0] == prefix[0] && found.start[1] == prefix[1] &&
        found.start[2] == prefix[2])
        found.start += 3, found.size -= 3;
    return found;
}

/* Rows lie anywhere in memory: so many rows ahead they are fetched into the cache. */
#define AHEAD 16
