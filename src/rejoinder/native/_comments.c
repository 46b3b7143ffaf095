/* Fields of JSON lines, facts about texts, and strings gathered from columns: json_lines, texts and
   strings of rejoinder.corpus call this, and work without it.

   A line that is anything but plain (an invalid one, a wanted field that is neither a string nor a
   short integer, half of a surrogate pair) is left to the caller: one place decides about those. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define MAX_FIELDS 16
#define MAX_DEPTH 32
#define MAX_DIGITS 18

typedef struct {
    uint8_t *values;
    size_t size;
} Bytes;

typedef struct {
    const char *name;
    size_t name_size;
    Bytes content, ends, present; /* as in a column of Arrow, but `present` has a byte per row */
    int found;                    /* in the line at hand */
} Field;

typedef struct {
    const uint8_t *at, *end;
    const uint8_t *readable; /* end of the memory behind `end`, which vectors may read */
} Text;

/* What each reader returns, other than 0: the line is left to the caller. */
enum { REFUSED = -1 };

static void skip_space(Text *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\r'))
        text->at++;
}

/* Moves behind characters of ASCII that stand for themselves, and copies them: to `*out` there is
   room for a vector more than the text has. */
static void plain_run(Text *text, uint8_t **out) {
#if defined(__SSE2__)
    while (text->readable - text->at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text->at);
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        /* as signed numbers, bytes beyond ASCII are below the space, too */
        special = _mm_or_si128(special, _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')));
        int found = _mm_movemask_epi8(special);
        if (*out) _mm_storeu_si128((__m128i *)*out, bytes);
        /* a line feed ends each line but the last, and is special */
        int length = found ? __builtin_ctz((unsigned)found) : 16;
        if (length > text->end - text->at) length = (int)(text->end - text->at);
        if (*out) *out += length;
        text->at += length;
        if (length < 16) return;
    }
#endif
    while (text->at < text->end && *text->at >= 0x20 && *text->at < 0x80 && *text->at != '"' &&
           *text->at != '\\') {
        if (*out) *(*out)++ = *text->at;
        text->at++;
    }
}

/* Returns the length of a valid character of more than one byte, 0 for an invalid one. */
static int wide_character(const uint8_t *at, const uint8_t *end) {
    uint8_t first = at[0];
    int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || end - at < size) return 0;
    for (int index = 1; index < size; index++)
        if ((at[index] & 0xC0) != 0x80) return 0;
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) ||
        (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F))
        return 0;
    return size;
}

static int32_t hexadecimal(Text *text) {
    if (text->end - text->at < 4) return -1;
    int32_t value = 0;
    for (int index = 0; index < 4; index++) {
        uint8_t c = *text->at++, lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Reads what follows a backslash. Writes a character if `*out` is not null. */
static int escape(Text *text, uint8_t **out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (text->at == text->end) return REFUSED;
    uint8_t kind = *text->at++;
    if (kind != 'u') {
        const char *place = kind ? strchr(names, kind) : NULL;
        if (!place) return REFUSED;
        if (*out) *(*out)++ = (uint8_t)values[place - names];
        return 0;
    }
    int32_t code = hexadecimal(text);
    if (code <= 0 || (code >= 0xDC00 && code < 0xE000)) return REFUSED;
    if (code >= 0xD800 && code < 0xDC00) {
        if (text->end - text->at < 6 || text->at[0] != '\\' || text->at[1] != 'u') return REFUSED;
        text->at += 2;
        int32_t low = hexadecimal(text);
        if (low < 0xDC00 || low > 0xDFFF) return REFUSED;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    uint8_t *to = *out;
    if (!to) return 0;
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6), *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (uint8_t)(0xE0 | code >> 12), *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else {
        *to++ = (uint8_t)(0xF0 | code >> 18), *to++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F)), *to++ = (uint8_t)(0x80 | (code & 0x3F));
    }
    *out = to;
    return 0;
}

/* Reads the rest of a string, behind its first quote. Writes it to `out` unless that is null. */
static int string(Text *text, uint8_t *out, uint8_t **end) {
    for (;;) {
        plain_run(text, &out);
        if (text->at == text->end) return REFUSED;
        uint8_t c = *text->at;
        if (c == '"') break;
        if (c == '\\') {
            text->at++;
            if (escape(text, &out)) return REFUSED;
        } else {
            int size = c < 0x80 ? 0 : wide_character(text->at, text->end);
            if (!size) return REFUSED;
            if (out)
                for (int index = 0; index < size; index++) *out++ = text->at[index];
            text->at += size;
        }
    }
    text->at++;
    if (end) *end = out;
    return 0;
}

static int digits(Text *text) {
    const uint8_t *start = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') text->at++;
    return (int)(text->at - start);
}

/* Reads a number. `*whole` is its length if it is a short integer, else 0. */
static int number(Text *text, size_t *whole) {
    const uint8_t *start = text->at;
    int negative = *text->at == '-';
    text->at += negative;
    const uint8_t *first = text->at;
    int count = digits(text);
    if (!count || (count > 1 && *first == '0')) return REFUSED;
    int plain = count <= MAX_DIGITS && !(negative && *first == '0');
    if (text->at < text->end && *text->at == '.') {
        text->at++, plain = 0;
        if (!digits(text)) return REFUSED;
    }
    if (text->at < text->end && (*text->at | 0x20) == 'e') {
        text->at++, plain = 0;
        if (text->at < text->end && (*text->at == '+' || *text->at == '-')) text->at++;
        if (!digits(text)) return REFUSED;
    }
    *whole = plain ? (size_t)(text->at - start) : 0;
    return 0;
}

static int word(Text *text, const char *name) {
    size_t size = strlen(name);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, name, size)) return REFUSED;
    text->at += size;
    return 0;
}

static int skip_value(Text *text, int depth);

/* Reads the members of an object or the items of an array that nobody wants. */
static int skip_nested(Text *text, int depth, uint8_t close) {
    if (depth == MAX_DEPTH) return REFUSED;
    text->at++;
    skip_space(text);
    if (text->at < text->end && *text->at == close) return text->at++, 0;
    for (;;) {
        if (close == '}') {
            skip_space(text);
            if (text->at == text->end || *text->at++ != '"' || string(text, NULL, NULL))
                return REFUSED;
            skip_space(text);
            if (text->at == text->end || *text->at++ != ':') return REFUSED;
        }
        if (skip_value(text, depth + 1)) return REFUSED;
        skip_space(text);
        if (text->at == text->end) return REFUSED;
        uint8_t c = *text->at++;
        if (c == close) return 0;
        if (c != ',') return REFUSED;
    }
}

static int skip_value(Text *text, int depth) {
    skip_space(text);
    if (text->at == text->end) return REFUSED;
    size_t whole;
    switch (*text->at) {
    case '"': return text->at++, string(text, NULL, NULL);
    case '{': return skip_nested(text, depth, '}');
    case '[': return skip_nested(text, depth, ']');
    case 't': return word(text, "true");
    case 'f': return word(text, "false");
    case 'n': return word(text, "null");
    default: return number(text, &whole);
    }
}

/* Reads the value of a wanted field: a string, a short integer or null. */
static int wanted_value(Text *text, Field *field) {
    if (field->found) return REFUSED; /* a repeated key */
    field->found = 1;
    skip_space(text);
    if (text->at == text->end) return REFUSED;
    if (*text->at == '"') {
        text->at++;
        uint8_t *start = field->content.values + field->content.size, *end = start;
        if (string(text, start, &end)) return REFUSED;
        field->content.size += (size_t)(end - start);
        field->found = 2;
        return 0;
    }
    if (*text->at == 'n') return word(text, "null");
    const uint8_t *start = text->at;
    size_t size = 0;
    if ((*start != '-' && (*start < '0' || *start > '9')) || number(text, &size) || !size)
        return REFUSED;
    field->found = 2;
    memcpy(field->content.values + field->content.size, start, size);
    field->content.size += size;
    return 0;
}

static Field *find(Field *fields, int count, const uint8_t *name, size_t size, int *guess) {
    for (int tried = 0; tried < count; tried++) {
        int index = (*guess + tried) % count;
        if (fields[index].name_size == size && !memcmp(fields[index].name, name, size))
            return *guess = (index + 1) % count, fields + index;
    }
    return NULL;
}

static int object(Text *text, Field *fields, int count, int *guess) {
    skip_space(text);
    if (text->at == text->end || *text->at++ != '{') return REFUSED;
    skip_space(text);
    if (text->at < text->end && *text->at == '}') {
        text->at++;
    } else {
        for (;;) {
            skip_space(text);
            if (text->at == text->end || *text->at++ != '"') return REFUSED;
            const uint8_t *name = text->at;
            uint8_t *none = NULL;
            plain_run(text, &none);
            size_t size = (size_t)(text->at - name);
            if (text->at == text->end || *text->at++ != '"') return REFUSED;
            skip_space(text);
            if (text->at == text->end || *text->at++ != ':') return REFUSED;
            Field *field = find(fields, count, name, size, guess);
            int problem = field ? wanted_value(text, field) : skip_value(text, 0);
            if (problem) return problem;
            skip_space(text);
            if (text->at == text->end) return REFUSED;
            uint8_t c = *text->at++;
            if (c == '}') break;
            if (c != ',') return REFUSED;
        }
    }
    skip_space(text);
    return text->at == text->end ? 0 : REFUSED;
}

static int is_blank(const Text *text) {
    Text rest = *text;
    skip_space(&rest);
    return rest.at == rest.end;
}

static void add_number(Bytes *numbers, int64_t number) {
    memcpy(numbers->values + numbers->size, &number, sizeof number);
    numbers->size += sizeof number;
}

/* Reads a line: a row is added to all columns, or none is. */
static int line(Text text, Field *fields, int count, int *guess) {
    size_t sizes[MAX_FIELDS];
    for (int index = 0; index < count; index++)
        sizes[index] = fields[index].content.size, fields[index].found = 0;
    int problem = object(&text, fields, count, guess);
    for (int index = 0; index < count; index++) {
        Field *field = fields + index;
        if (problem) {
            field->content.size = sizes[index];
            continue;
        }
        add_number(&field->ends, (int64_t)field->content.size);
        field->present.values[field->present.size++] = field->found == 2;
    }
    return problem;
}

static void all_lines(const uint8_t *at, const uint8_t *end, int64_t number, Field *fields, int count,
                      Bytes *numbers, Bytes *refused) {
    const uint8_t *readable = end;
    int guess = 0;
    for (; at < end; number++) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        Text text = {at, stop ? stop : end, readable};
        at = stop ? stop + 1 : end;
        if (is_blank(&text)) continue;
        add_number(line(text, fields, count, &guess) ? refused : numbers, number);
    }
}

static size_t lines_of(const uint8_t *at, const uint8_t *end) {
    size_t count = at < end && end[-1] != '\n';
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) at++, count++;
    return count;
}

/* Memory that Python reads as a buffer, without a copy. */
typedef struct {
    PyObject_HEAD
    Bytes bytes;
} Memory;

static int memory_buffer(PyObject *self, Py_buffer *view, int flags) {
    Bytes *bytes = &((Memory *)self)->bytes;
    return PyBuffer_FillInfo(view, self, bytes->values, (Py_ssize_t)bytes->size, 1, flags);
}

static void memory_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(((Memory *)self)->bytes.values);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot memory_slots[] = {
    {Py_bf_getbuffer, memory_buffer},
    {Py_tp_dealloc, memory_free},
    {0, NULL},
};
static PyType_Spec memory_spec = {"rejoinder.native._comments.Memory", sizeof(Memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};
static PyTypeObject *memory_type;

static int take(Bytes *bytes, size_t room) {
    bytes->values = malloc(room ? room : 1);
    return bytes->values ? 0 : -1;
}

/* Hands memory over to Python, without what was not used of it. */
static PyObject *as_memory(Bytes *bytes) {
    uint8_t *values = realloc(bytes->values, bytes->size ? bytes->size : 1);
    if (values) bytes->values = values;
    Memory *memory = (Memory *)PyType_GenericAlloc(memory_type, 0);
    if (!memory) return NULL;
    memory->bytes = *bytes;
    bytes->values = NULL;
    return (PyObject *)memory;
}

static PyObject *as_columns(Field *fields, int count) {
    PyObject *columns = PyList_New(0);
    for (int index = 0; columns && index < count; index++) {
        Field *field = fields + index;
        PyObject *column = Py_BuildValue("(NNN)", as_memory(&field->content), as_memory(&field->ends),
                                         as_memory(&field->present));
        if (!column || PyList_Append(columns, column)) Py_CLEAR(columns);
        Py_XDECREF(column);
    }
    return columns;
}

static int fields_of(PyObject *names, Field *fields) {
    int count = (int)PyTuple_Size(names);
    if (count > MAX_FIELDS) {
        PyErr_Format(PyExc_ValueError, "%d fields, at most %d", count, MAX_FIELDS);
        return -1;
    }
    for (int index = 0; index < count; index++) {
        Py_ssize_t size;
        fields[index].name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, index), &size);
        if (!fields[index].name) return -1;
        fields[index].name_size = (size_t)size;
    }
    return count;
}

static PyObject *json_fields(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *block, *names;
    long long first;
    if (!PyArg_ParseTuple(arguments, "SO!L", &block, &PyTuple_Type, &names, &first)) return NULL;
    Field fields[MAX_FIELDS] = {0};
    Bytes numbers = {0}, refused = {0};
    int count = fields_of(names, fields);
    if (count < 0) return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AsString(block);
    size_t size = (size_t)PyBytes_Size(block);
    /* Memory that is not written to costs nothing, and what is left over is given back: no column
       is copied because it grew. */
    size_t rows = lines_of(start, start + size);
    int failed = take(&numbers, rows * 8) || take(&refused, rows * 8);
    for (int index = 0; index < count && !failed; index++) {
        Field *field = fields + index;
        failed = take(&field->content, size + 16) || take(&field->ends, (rows + 1) * 8) ||
                 take(&field->present, rows);
        if (!failed) add_number(&field->ends, 0);
    }
    PyObject *result = NULL;
    if (failed) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        all_lines(start, start + size, first, fields, count, &numbers, &refused);
        Py_END_ALLOW_THREADS
        PyObject *columns = as_columns(fields, count);
        if (columns) result = Py_BuildValue("(NNN)", columns, as_memory(&numbers), as_memory(&refused));
    }
    for (int index = 0; index < count; index++)
        free(fields[index].content.values), free(fields[index].ends.values),
            free(fields[index].present.values);
    free(numbers.values), free(refused.values);
    return result;
}

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

/* Returns a string without a prefix of three bytes. There are none outside of a column. */
static String string_at(const Columns *columns, uint32_t which, uint32_t row, const char *prefix) {
    String none = {NULL, 0};
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

static const char *checked_prefix(const char *prefix) {
    if (!prefix[0] || strlen(prefix) == 3) return prefix;
    PyErr_SetString(PyExc_ValueError, "a prefix has three bytes or none");
    return NULL;
}

static PyObject *gather(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *list;
    Py_buffer which, rows;
    const char *prefix;
    if (!PyArg_ParseTuple(arguments, "O!y*y*s", &PyList_Type, &list, &which, &rows, &prefix)) return NULL;
    Columns columns = {0};
    PyObject *ends = NULL, *content = NULL, *result = NULL;
    Py_ssize_t count = rows.len / 4, bad = -1;
    if (which.len != rows.len) PyErr_SetString(PyExc_ValueError, "which and rows differ in length");
    if (PyErr_Occurred() || !checked_prefix(prefix) || columns_of(list, &columns)) goto done;
    if (!(ends = PyBytes_FromStringAndSize(NULL, (count + 1) * 8))) goto done;
    int64_t *to = (int64_t *)PyBytes_AsString(ends);
    const uint32_t *column = which.buf, *row = rows.buf;
    Py_BEGIN_ALLOW_THREADS
    to[0] = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        if (index + AHEAD < count && (Py_ssize_t)column[index + AHEAD] < columns.count)
            __builtin_prefetch((const int64_t *)columns.columns[column[index + AHEAD]].ends.buf +
                               row[index + AHEAD]);
        String found = string_at(&columns, column[index], row[index], prefix);
        if (!found.start) { bad = index; break; }
        to[index + 1] = to[index] + (int64_t)found.size;
    }
    Py_END_ALLOW_THREADS
    if (bad >= 0) {
        PyErr_Format(PyExc_IndexError, "no row %u in column %u", row[bad], column[bad]);
        goto done;
    }
    if (!(content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)to[count]))) goto done;
    uint8_t *out = (uint8_t *)PyBytes_AsString(content);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t index = 0; index < count; index++) {
        if (index + AHEAD < count)
            __builtin_prefetch(string_at(&columns, column[index + AHEAD], row[index + AHEAD], "").start);
        String found = string_at(&columns, column[index], row[index], prefix);
        memcpy(out + to[index], found.start, found.size);
    }
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("(OO)", content, ends);
done:
    Py_XDECREF(content);
    Py_XDECREF(ends);
    release(&columns);
    PyBuffer_Release(&which);
    PyBuffer_Release(&rows);
    return result;
}

enum { WIDE = 1, UNCLEAN = 2 };

#if defined(__SSE2__)
/* Returns 16 bytes of a text of which `size` are left, with zeros behind its end. */
static __m128i bytes_of(const uint8_t *text, size_t size, const uint8_t *readable) {
    static const uint8_t masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                      255, 255, 255, 255, 255, 255, 255, 255};
    if (size >= 16) return _mm_loadu_si128((const __m128i *)text);
    if (readable - text >= 16)
        return _mm_and_si128(_mm_loadu_si128((const __m128i *)text),
                             _mm_loadu_si128((const __m128i *)(masks + 16 - size)));
    uint8_t rest[16] = {0};
    memcpy(rest, text, size);
    return _mm_loadu_si128((const __m128i *)rest);
}

static uint8_t ascii_facts(const uint8_t *text, size_t size, const uint8_t *readable, int32_t *letters) {
    __m128i count = _mm_setzero_si128(), odd = count, wide = count;
    unsigned before = 1, doubled = 0, spaces = 0;
    for (size_t index = 0; index < size; index += 16) {
        __m128i bytes = bytes_of(text + index, size - index, readable);
        __m128i from_a = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
        __m128i letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
        count = _mm_add_epi64(count, _mm_sad_epu8(_mm_and_si128(letter, _mm_set1_epi8(1)), _mm_setzero_si128()));
        __m128i from_tab = _mm_sub_epi8(bytes, _mm_set1_epi8('\t'));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(_mm_min_epu8(from_tab, _mm_set1_epi8(4)), from_tab));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&')));
        wide = _mm_or_si128(wide, bytes);
        spaces = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')));
        doubled |= spaces & (spaces << 1 | before);
        before = spaces >> 15;
    }
    *letters = _mm_cvtsi128_si32(count) + _mm_cvtsi128_si32(_mm_srli_si128(count, 8));
    int last_is_space = size && text[size - 1] == ' ';
    return (uint8_t)((_mm_movemask_epi8(wide) ? WIDE : 0) |
                     (doubled || last_is_space || _mm_movemask_epi8(odd) ? UNCLEAN : 0));
}
#else
static uint8_t ascii_facts(const uint8_t *text, size_t size, const uint8_t *readable, int32_t *letters) {
    (void)readable;
    int32_t count = 0;
    uint8_t wide = 0, unclean = 0, before = ' ';
    for (size_t index = 0; index < size; index++) {
        uint8_t c = text[index];
        count += (uint8_t)((c | 0x20) - 'a') < 26;
        wide |= c;
    }
    for (size_t index = 0; index < size; index++) {
        uint8_t c = text[index];
        unclean |= (c == '&') | ((uint8_t)(c - '\t') < 5) | ((c == ' ') & (before == ' '));
        before = c;
    }
    unclean |= size && before == ' ';
    *letters = count;
    return (uint8_t)((wide >> 7 ? WIDE : 0) | (unclean ? UNCLEAN : 0));
}
#endif

/* Counts the letters of a text of UTF-8 by a table with a bit for each character. */
static int32_t wide_letters(const uint8_t *text, size_t size, const uint8_t *table) {
    int32_t count = 0;
    for (size_t index = 0; index < size;) {
        uint32_t c = text[index];
        size_t more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
        if (index + more >= size) break;
        static const uint8_t firsts[] = {0x7F, 0x1F, 0x0F, 0x07};
        c &= firsts[more];
        for (size_t next = 1; next <= more; next++) c = c << 6 | (text[index + next] & 0x3F);
        count += table[c >> 3] >> (c & 7) & 1;
        index += more + 1;
    }
    return count;
}

/* Counts the letters of a text, and finds whether it has characters beyond ASCII (WIDE) and may have
   what cleaning changes (UNCLEAN): an ampersand, or white space other than single spaces within. */
static uint8_t facts(const uint8_t *text, size_t size, const uint8_t *readable, const uint8_t *table,
                     int32_t *letters) {
    uint8_t found = ascii_facts(text, size, readable, letters);
    if (!(found & WIDE)) return found;
    *letters = wide_letters(text, size, table);
    /* U+0085, U+00A0, U+1680, U+2000 to U+205F, U+3000 and their neighbours */
    for (size_t index = 0; !(found & UNCLEAN) && index + 1 < size; index++) {
        uint8_t c = text[index], next = text[index + 1];
        uint8_t last = index + 2 < size ? text[index + 2] : 0;
        if ((c == 0xC2 && (next == 0x85 || next == 0xA0)) || (c == 0xE1 && next == 0x9A) ||
            (c == 0xE2 && next == 0x80 && (last < 0x8C || (last >= 0xA8 && last <= 0xAF))) ||
            (c == 0xE2 && next == 0x81) || (c == 0xE3 && next == 0x80))
            found |= UNCLEAN;
    }
    return found;
}

#define TABLE_BYTES (0x200000 / 8)

static PyObject *text_facts(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer content, ends, table;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &content, &ends, &table)) return NULL;
    Py_ssize_t rows = ends.len / 8 - 1;
    PyObject *letters = NULL, *kinds = NULL;
    if (table.len != TABLE_BYTES)
        PyErr_Format(PyExc_ValueError, "a table of %d bytes is expected", TABLE_BYTES);
    else if ((letters = PyBytes_FromStringAndSize(NULL, rows * 4)))
        kinds = PyBytes_FromStringAndSize(NULL, rows);
    if (kinds) {
        const uint8_t *texts = content.buf, *readable = texts + content.len;
        const int64_t *borders = ends.buf;
        int32_t *counts = (int32_t *)PyBytes_AsString(letters);
        uint8_t *flags = (uint8_t *)PyBytes_AsString(kinds);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t row = 0; row < rows; row++)
            flags[row] = facts(texts + borders[row], (size_t)(borders[row + 1] - borders[row]), readable,
                               table.buf, counts + row);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&table);
    if (!kinds) {
        Py_XDECREF(letters);
        return NULL;
    }
    return Py_BuildValue("(NN)", letters, kinds);
}

static PyMethodDef methods[] = {
    {"json_fields", json_fields, METH_VARARGS,
     "json_fields(lines, names, first line's number) -> (columns, numbers of rows, of refused lines)"},
    {"gather", gather, METH_VARARGS, "gather(columns, which, rows, prefix) -> (content, ends)"},
    {"text_facts", text_facts, METH_VARARGS, "text_facts(content, ends, table) -> (letters, kinds)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_comments", "Fields of JSON lines, facts about texts, strings.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__comments(void) {
    if (!(memory_type = (PyTypeObject *)PyType_FromSpec(&memory_spec))) return NULL;
    return PyModule_Create(&module);
}
