/* The best texts of a segment by BM25: rejoinder.index.matcher calls this, and says what it computes.

   Texts are searched in ranges whose sums stay in the processor's cache, and with them what frequent
   words add to each text, which all queries share. Words that can't bring a text of a range among the
   best are looked up for the texts that are left. Searches without the
   interpreter's lock. Rows that are out of range are refused, never followed. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fast.h"

enum { RANGE = 4096, BLOCK = 64, PART = 256 };
/* Words are looked up if they add at most this share of the least of the best scores: for more, too
   many texts would be left. */
static const double LOOKED_UP = 0.15;

typedef struct {
    const uint32_t *rows; /* of each word's texts, ascending */
    const char *counts;
    const float *slack; /* of each text: count / (count + slack) is its share */
    const int64_t *offsets;
    const uint8_t *absent; /* of each text: 1 if it is not found; NULL: all are */
    const float *frequent; /* the shares of all texts for each frequent word */
    int64_t pairs, texts, count_bytes;
} Segment;

typedef struct {
    float score;
    uint32_t row;
} Hit;

/* The best hits so far; the worst of them is first: a heap. */
typedef struct {
    Hit *hits;
    int64_t size, most;
} Best;

typedef struct {
    const int64_t *words, *slots; /* slots: places in `frequent`, -1 for rare words */
    const double *weights, *rests; /* rests: the most that a word and those after it add */
    int64_t count;
    int64_t *places; /* of each word: its next text */
} Query;

static inline int worse(Hit one, Hit other) {
    return one.score < other.score || (one.score == other.score && one.row > other.row);
}

static void push(Best *best, Hit hit) {
    Hit *heap = best->hits;
    int64_t at;
    if (best->size < best->most) {
        for (at = best->size++; at && worse(hit, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    } else {
        if (!worse(heap[0], hit)) return;
        for (at = 0;;) {
            int64_t child = 2 * at + 1;
            if (child >= best->size) break;
            if (child + 1 < best->size && worse(heap[child + 1], heap[child])) child++;
            if (!worse(heap[child], hit)) break;
            heap[at] = heap[child];
            at = child;
        }
    }
    heap[at] = hit;
}

/* The score that a text must exceed, or 0 if there are fewer hits than wanted. */
static inline float least_of(const Best *best) { return best->size < best->most ? 0 : best->hits[0].score; }

static float share(const Segment *segment, int64_t at, uint32_t row, float weight) {
    float count = segment->count_bytes == 1   ? (float)((const uint8_t *)segment->counts)[at]
                  : segment->count_bytes == 2 ? (float)((const uint16_t *)segment->counts)[at]
                                              : (float)((const uint32_t *)segment->counts)[at];
    return weight * (count / (count + segment->slack[row]));
}

/* The first place from `at` on whose row is at least `row`: steps that double, then halves. */
static int64_t gallop(const uint32_t *rows, int64_t at, int64_t end, uint32_t row) {
    int64_t step = 1;
    if (at >= end || rows[at] >= row) return at;
    while (at + step < end && rows[at + step] < row) at += step, step *= 2;
    int64_t high = at + step < end ? at + step : end;
    while (high - at > 1) {
        int64_t middle = at + (high - at) / 2;
        if (rows[middle] < row) at = middle;
        else high = middle;
    }
    return high;
}

/* Returns whether the rows of `size` texts are all from `first` on and less than `first` + `length`. */
FASTEST static int within(const uint32_t *restrict rows, int64_t size, uint32_t first, uint32_t length) {
    uint32_t most = 0;
    for (int64_t at = 0; at < size; at++) most = rows[at] - first > most ? rows[at] - first : most;
    return most < length;
}

/* Computes the shares of texts, many at a time: one by one, a division each would take longer than all else. */
#define SHARES(name, type)                                                                                         \
    FASTEST static void name(const uint32_t *restrict rows, const type *restrict counts, const float *restrict slack, \
                             float weight, float *restrict shares, int64_t size) {                                 \
        for (int64_t at = 0; at < size; at++) {                                                                    \
            float count = (float)counts[at];                                                                       \
            shares[at] = weight * (count / (count + slack[rows[at]]));                                             \
        }                                                                                                          \
    }
SHARES(shares_of_bytes, uint8_t)
SHARES(shares_of_shorts, uint16_t)
SHARES(shares_of_longs, uint32_t)

/* Adds a word to the sums of the texts from `first` up to `end`, and returns the place of the next one. */
static int64_t add_word(const Segment *segment, int64_t at, int64_t stop, float weight, uint32_t first, uint32_t end,
                        float *restrict sums) {
    const uint32_t *restrict rows = segment->rows;
    float shares[PART];
    at = gallop(rows, at, stop, first);
    stop = gallop(rows, at, stop, end);
    for (; at < stop; at += PART) {
        int64_t size = stop - at < PART ? stop - at : PART;
        if (!within(rows + at, size, first, end - first)) return stop; /* a file that was changed is not in order */
        if (segment->count_bytes == 1)
            shares_of_bytes(rows + at, (const uint8_t *)segment->counts + at, segment->slack, weight, shares, size);
        else if (segment->count_bytes == 2)
            shares_of_shorts(rows + at, (const uint16_t *)segment->counts + at, segment->slack, weight, shares, size);
        else
            shares_of_longs(rows + at, (const uint32_t *)segment->counts + at, segment->slack, weight, shares, size);
        for (int64_t number = 0; number < size; number++) sums[rows[at + number] - first] += shares[number];
    }
    return stop;
}

/* Adds a frequent word to the sums of `size` texts. Products are stored: the processor would round them otherwise. */
FASTEST static void add_frequent(const float *restrict shares, float weight, float *restrict sums, int64_t size) {
    float products[PART];
    for (int64_t at = 0; at < size; at += PART) {
        int64_t some = size - at < PART ? size - at : PART;
        for (int64_t number = 0; number < some; number++) products[number] = weight * shares[at + number];
        for (int64_t number = 0; number < some; number++) sums[at + number] += products[number];
    }
}

/* Returns whether one of BLOCK sums, none of which is negative, is at least a number that is not negative. */
FASTEST static int reaches(const float *sums, float least) {
    int32_t bits[BLOCK], wanted, most = 0;
    memcpy(bits, sums, sizeof bits);
    memcpy(&wanted, &least, sizeof wanted);
    for (int at = 0; at < BLOCK; at++) most = bits[at] > most ? bits[at] : most;
    return most >= wanted;
}

/* Looks words up for a text, and adds them to its score as long as it can be among the best. */
static float look_up(const Segment *segment, const Query *query, int64_t done, uint32_t row, float score, float least) {
    for (; done < query->count && score >= least - query->rests[done]; done++) {
        if (query->slots[done] >= 0) {
            score += (float)query->weights[done] * segment->frequent[query->slots[done] * segment->texts + row];
            continue;
        }
        int64_t stop = segment->offsets[query->words[done] + 1];
        int64_t at = query->places[done] = gallop(segment->rows, query->places[done], stop, row);
        if (at < stop && segment->rows[at] == row) score += share(segment, at, row, (float)query->weights[done]);
    }
    return done < query->count ? 0 : score;
}

static void search_range(const Segment *segment, const Query *query, uint32_t first, uint32_t end, float *sums,
                         Best *best) {
    int64_t done = 0;
    for (; done < query->count && query->rests[done] >= LOOKED_UP * least_of(best); done++) {
        float weight = (float)query->weights[done];
        if (query->slots[done] >= 0)
            add_frequent(segment->frequent + query->slots[done] * segment->texts + first, weight, sums, end - first);
        else
            query->places[done] = add_word(segment, query->places[done], segment->offsets[query->words[done] + 1],
                                           weight, first, end, sums);
    }
    double rest = done < query->count ? query->rests[done] : 0;
    for (uint32_t block = first; block < end; block += BLOCK) {
        float least = least_of(best) * (1 - 1e-5f); /* less the rounding error of a score */
        float limit = least > rest ? (float)(least - rest) : 0;
        if (!reaches(sums + (block - first), limit)) continue;
        for (uint32_t row = block; row < block + BLOCK && row < end; row++) {
            float sum = sums[row - first];
            if (sum == 0 || sum < limit || (segment->absent && segment->absent[row])) continue;
            float score = look_up(segment, query, done, row, sum, least);
            if (score > least_of(best)) push(best, (Hit){score, row});
        }
    }
    memset(sums, 0, RANGE * sizeof *sums);
}

static int order(const void *first, const void *second) {
    return worse(*(const Hit *)second, *(const Hit *)first) ? -1 : 1; /* rows differ */
}

typedef struct {
    const int64_t *words, *slots, *begins; /* of all queries, and where those of each begin; one more than queries */
    const double *weights, *rests;
    int64_t queries, top_k;
    uint32_t *rows;
    float *scores;
    int64_t *sizes;
} Queries;

/* Returns whether there was memory. */
static int search_all(const Segment *segment, const Queries *all) {
    float *sums = calloc(RANGE, sizeof *sums);
    Hit *hits = malloc((size_t)(all->queries * all->top_k + 1) * sizeof *hits);
    Best *best = malloc((size_t)(all->queries + 1) * sizeof *best);
    int64_t *places = malloc((size_t)(all->begins[all->queries] + 1) * sizeof *places);
    int enough = sums && hits && best && places;
    for (int64_t word = 0; word < all->begins[all->queries] && enough; word++)
        places[word] = segment->offsets[all->words[word]];
    for (int64_t number = 0; number < all->queries && enough; number++)
        best[number] = (Best){hits + number * all->top_k, 0, all->top_k};
    for (int64_t first = 0; first < segment->texts && enough; first += RANGE) {
        int64_t end = first + RANGE < segment->texts ? first + RANGE : segment->texts;
        for (int64_t number = 0; number < all->queries; number++) {
            int64_t begin = all->begins[number];
            Query query = {all->words + begin,    all->slots + begin, all->weights + begin,
                           all->rests + begin,    all->begins[number + 1] - begin, places + begin};
            if (query.count) search_range(segment, &query, (uint32_t)first, (uint32_t)end, sums, best + number);
        }
    }
    for (int64_t number = 0; number < all->queries && enough; number++) {
        qsort(best[number].hits, (size_t)best[number].size, sizeof *hits, order);
        all->sizes[number] = best[number].size;
        for (int64_t place = 0; place < best[number].size; place++) {
            all->rows[number * all->top_k + place] = best[number].hits[place].row;
            all->scores[number * all->top_k + place] = best[number].hits[place].score;
        }
    }
    free(sums), free(hits), free(best), free(places);
    return enough;
}

static int belong_together(const Segment *segment, int64_t known, int64_t frequent, const Queries *all, int64_t words) {
    if (all->begins[0] != 0 || all->begins[all->queries] != words) return 0;
    for (int64_t query = 0; query < all->queries; query++)
        if (all->begins[query] > all->begins[query + 1]) return 0;
    for (int64_t at = 0; at < words; at++) {
        int64_t word = all->words[at];
        if (word < 0 || word >= known || all->slots[at] < -1 || all->slots[at] >= frequent) return 0;
        int64_t begin = segment->offsets[word], end = segment->offsets[word + 1];
        if (begin < 0 || begin > end || end > segment->pairs) return 0;
    }
    return 1;
}

static PyObject *best(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer absent, rows, counts, slack, offsets, frequent, words, slots, begins, weights, rests, out_rows, out_scores,
        out_sizes;
    Py_ssize_t top_k;
    if (!PyArg_ParseTuple(arguments, "nz*y*y*y*y*y*y*y*y*y*y*w*w*w*:best", &top_k, &absent, &rows, &counts, &slack, &offsets,
                          &frequent, &words, &slots, &begins, &weights, &rests, &out_rows, &out_scores, &out_sizes))
        return NULL;
    int64_t pairs = rows.len / 4, texts = slack.len / 4, total = words.len / 8;
    int64_t bytes = pairs ? counts.len / pairs : 1;
    Segment segment = {rows.buf, counts.buf, slack.buf, offsets.buf, absent.buf, frequent.buf, pairs, texts, bytes};
    Queries all = {words.buf, slots.buf, begins.buf, weights.buf, rests.buf, begins.len / 8 - 1, top_k, out_rows.buf,
                   out_scores.buf, out_sizes.buf};
    int64_t hits = top_k * all.queries;
    int fits = top_k > 0 && (!absent.buf || absent.len == texts) && (bytes == 1 || bytes == 2 || bytes == 4) && counts.len == pairs * bytes &&
               texts <= UINT32_MAX - RANGE && offsets.len >= 8 && all.queries >= 0 &&
               frequent.len % (4 * (texts + !texts)) == 0 && slots.len == total * 8 && weights.len == total * 8 && rests.len == total * 8 && out_rows.len == hits * 4 &&
               out_scores.len == hits * 4 && out_sizes.len == all.queries * 8 &&
               belong_together(&segment, offsets.len / 8 - 1, frequent.len / (4 * (texts + !texts)), &all, total);
    int enough = 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        enough = search_all(&segment, &all);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&absent), PyBuffer_Release(&rows), PyBuffer_Release(&counts), PyBuffer_Release(&slack);
    PyBuffer_Release(&offsets), PyBuffer_Release(&frequent), PyBuffer_Release(&slots), PyBuffer_Release(&words), PyBuffer_Release(&begins), PyBuffer_Release(&weights);
    PyBuffer_Release(&rests), PyBuffer_Release(&out_rows), PyBuffer_Release(&out_scores), PyBuffer_Release(&out_sizes);
    if (!enough) return PyErr_NoMemory();
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "best: arrays of these sizes do not belong together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"best", best, METH_VARARGS,
     "best(top_k, absent, rows, counts, slack, offsets, frequent, words, slots, begins, weights, rests, out_rows, out_scores, out_sizes)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_matches", "The best texts of a segment by BM25.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__matches(void) { return PyModule_Create(&module); }
