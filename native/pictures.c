/* A part of a JPEG picture, resized: only its rows and columns are decoded, at a half, a quarter or an
   eighth of the size where that is enough, by the libjpeg-turbo that Pillow has loaded already. */

#include "native.h"

#include <setjmp.h>

/* What we know of libjpeg: the beginning of two of its records, which is the same in every release since
   6b. How long the rest is it says itself, see rabaska_jpeg_form. */
enum { RECORD_ROOM = 4096, SCALES = 8, EXT_RGBX = 7, MARGIN = 4, MOST_ROWS = 8 };

typedef struct Reader Reader;
typedef struct {
    void (*error_exit)(Reader *);
    void (*emit_message)(Reader *, int);
    void (*output_message)(Reader *);
    void (*format_message)(Reader *, char *);
    void (*reset)(Reader *);
    int code, parameters[20];
    char rest[1024];
    jmp_buf failed; /* ours from here on */
    int warnings;
} Errors;

struct Reader {
    Errors *errors;
    void *memory, *progress, *client;
    int decompresses, state;
    void *source;
    unsigned width, height;
    int components, file_colours, colours;
    unsigned scale, of;
    double gamma;
    int buffered, raw, method, fancy, smoothing, quantize, dither, two_pass, wanted, pass_1, external, pass_2;
    unsigned out_width, out_height;
};

typedef union {
    Reader known;
    char room[RECORD_ROOM];
} Record;

/* libjpeg's functions, found by Python; and the version and the length of its record. */
typedef struct {
    Errors *(*standard_errors)(Errors *);
    void (*create)(Reader *, int, size_t);
    void (*from_memory)(Reader *, const unsigned char *, unsigned long);
    int (*read_header)(Reader *, int);
    int (*start)(Reader *);
    void (*crop)(Reader *, unsigned *, unsigned *);
    unsigned (*skip)(Reader *, unsigned);
    unsigned (*read_rows)(Reader *, unsigned char **, unsigned);
    void (*destroy)(Reader *);
    int64_t version, size;
} Jpeg;

/* What is wanted of a picture: a box of it, in so many pixels. */
typedef struct {
    int64_t left, top, width, height, out_width, out_height;
    int64_t filter; /* 2 bilinear, 3 bicubic, as Pillow counts */
    int64_t planes; /* 0: red, green, blue and 255 for each pixel; 1: all reds, all greens, all blues */
    int64_t mirrored;
} Wanted;

static void fail(Reader *reader)
{
    longjmp(reader->errors->failed, 1);
}

static void note(Reader *reader, int level)
{
    reader->errors->warnings += level < 0;
}

static void be_silent(Reader *reader)
{
    (void)reader;
}

static void prepare(const Jpeg *jpeg, Record *record, Errors *errors)
{
    memset(record, 0, sizeof *record);
    memset(errors, 0, sizeof *errors);
    record->known.errors = jpeg->standard_errors(errors);
    errors->error_exit = fail;
    errors->emit_message = note;
    errors->output_message = be_silent;
}

/* What it says when it is asked for a record of a form that it does not have: the one that it has. */
static int64_t refused(const Jpeg *jpeg, int64_t version, int64_t size)
{
    Record record;
    Errors errors;

    prepare(jpeg, &record, &errors);
    if (setjmp(errors.failed))
        return errors.parameters[0];
    jpeg->create(&record.known, (int)version, (size_t)size);
    jpeg->destroy(&record.known);
    return 0;
}

/* Fill in the version and the length; whether this is a library that we know. */
EXPORTED int rabaska_jpeg_form(Jpeg *jpeg)
{
    jpeg->version = refused(jpeg, 0, 0);
    jpeg->size = refused(jpeg, jpeg->version, 0);
    return jpeg->version >= 62 && jpeg->version < 100 &&
           jpeg->size >= (int64_t)sizeof(Reader) && jpeg->size <= RECORD_ROOM;
}

/* The width and height of a picture; 0 for one that is left to Pillow. */
EXPORTED int rabaska_jpeg_size(const Jpeg *jpeg, const unsigned char *data, int64_t size, int64_t *sides)
{
    Record record;
    Errors errors;
    Reader *reader = &record.known;

    prepare(jpeg, &record, &errors);
    if (setjmp(errors.failed)) {
        jpeg->destroy(reader);
        return 0;
    }
    jpeg->create(reader, (int)jpeg->version, (size_t)jpeg->size);
    jpeg->from_memory(reader, data, (unsigned long)size);
    jpeg->read_header(reader, 1);
    sides[0] = reader->width;
    sides[1] = reader->height;
    int usual = reader->components == 1 || reader->components == 3;
    jpeg->destroy(reader);
    return usual && !errors.warnings;
}

/* How the pixels of a line become fewer or more: for each new one, how many old ones from where on, and
   the weight of each in 1/16384. The sums are Pillow's, whose weights have 22 bits. */
typedef struct {
    int64_t first, last; /* old pixels that are used at all */
    int64_t most;        /* weights of each, an even number */
    int32_t *starts;
    int16_t *weights;
} Line;

static double weight(int64_t filter, double x)
{
    x = x < 0 ? -x : x;
    if (filter == 2)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static int make_line(Line *line, double begin, double length, int64_t all, int64_t count, int64_t filter)
{
    double scale = length / (double)count, wide = scale > 1 ? scale : 1;
    double support = (filter == 2 ? 1.0 : 2.0) * wide;
    int64_t last = (int64_t)(begin + length);

    last += (double)last < begin + length;
    line->first = (int64_t)begin;
    line->last = last < all ? last : all;
    line->most = ((int64_t)(2 * support) + 2) / 2 * 2;
    line->starts = malloc((size_t)count * sizeof *line->starts);
    line->weights = calloc((size_t)(count * line->most), sizeof *line->weights);
    double *exact = malloc((size_t)line->most * sizeof *exact);
    if (line->starts == NULL || line->weights == NULL || exact == NULL) {
        free(exact);
        return 0;
    }
    for (int64_t place = 0; place < count; place++) {
        double centre = begin + ((double)place + 0.5) * scale, sum = 0;
        int64_t from = (int64_t)(centre - support + 0.5), to = (int64_t)(centre + support + 0.5);
        from = from > line->first ? from : line->first;
        to = to < line->last ? to : line->last;
        if (to > from + line->most)
            to = from + line->most;
        for (int64_t old = from; old < to; old++)
            sum += exact[old - from] = weight(filter, ((double)old - centre + 0.5) / wide);
        int16_t *weights = line->weights + place * line->most;
        int left = 16384, largest = 0;
        for (int64_t old = 0; old < to - from; old++) {
            weights[old] = (int16_t)(exact[old] / sum * 16384 + (exact[old] < 0 ? -0.5 : 0.5));
            left -= weights[old];
            if (weights[old] > weights[largest])
                largest = (int)old;
        }
        weights[largest] = (int16_t)(weights[largest] + left); /* what is white stays white */
        /* All weights lie within the line, those of zero too, so that none reads beyond it. */
        int64_t start = from, room = line->last - line->most;
        if (start > room && room >= line->first) {
            int64_t shift = start - room;
            memmove(weights + shift, weights, (size_t)(line->most - shift) * sizeof *weights);
            memset(weights, 0, (size_t)shift * sizeof *weights);
            start = room;
        }
        line->starts[place] = (int32_t)(start - line->first);
    }
    free(exact);
    return 1;
}

static inline unsigned char clipped(int32_t sum)
{
    sum = (sum + 8192) >> 14;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* One line of pixels of four bytes, from `old`; there are so many bytes to read as the line's weights
   reach. */
static void across(const Line *line, const unsigned char *old, unsigned char *made, int64_t count)
{
    for (int64_t place = 0; place < count; place++, made += 4) {
        const unsigned char *from = old + 4 * line->starts[place];
        const int16_t *weights = line->weights + place * line->most;
#ifdef INTRINSICS
        __m128i sum = _mm_set1_epi32(8192), zero = _mm_setzero_si128();
        for (int64_t next = 0; next < line->most; next += 2, from += 8) {
            int32_t pair;
            memcpy(&pair, weights + next, 4);
            __m128i two = _mm_loadl_epi64((const __m128i *)from);
            __m128i mixed = _mm_unpacklo_epi8(two, _mm_srli_si128(two, 4));
            sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_unpacklo_epi8(mixed, zero), _mm_set1_epi32(pair)));
        }
        sum = _mm_packs_epi32(_mm_srai_epi32(sum, 14), zero);
        int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, zero));
        memcpy(made, &pixel, 4);
#else
        int32_t sums[3] = {0, 0, 0};
        for (int64_t next = 0; next < line->most; next++, from += 4)
            for (int colour = 0; colour < 3; colour++)
                sums[colour] += weights[next] * from[colour];
        for (int colour = 0; colour < 3; colour++)
            made[colour] = clipped(sums[colour]);
        made[3] = 255;
#endif
    }
}

/* One line out of several, which lie `width` bytes apart; `width` is a multiple of 16. */
static void down(const int16_t *weights, int64_t most, const unsigned char *old, int64_t width,
                 unsigned char *made)
{
#ifdef INTRINSICS
    __m128i zero = _mm_setzero_si128();
    for (int64_t byte = 0; byte < width; byte += 16) {
        __m128i sums[4];
        for (int part = 0; part < 4; part++)
            sums[part] = _mm_set1_epi32(8192);
        for (int64_t next = 0; next < most; next += 2) {
            int32_t pair;
            memcpy(&pair, weights + next, 4);
            if (pair == 0)
                continue;
            const unsigned char *at = old + next * width + byte;
            __m128i one = _mm_loadu_si128((const __m128i *)at), factors = _mm_set1_epi32(pair);
            __m128i two = _mm_loadu_si128((const __m128i *)(at + width));
            __m128i low = _mm_unpacklo_epi8(one, two), high = _mm_unpackhi_epi8(one, two);
            __m128i mixed[4] = {_mm_unpacklo_epi8(low, zero), _mm_unpackhi_epi8(low, zero),
                                _mm_unpacklo_epi8(high, zero), _mm_unpackhi_epi8(high, zero)};
            for (int part = 0; part < 4; part++)
                sums[part] = _mm_add_epi32(sums[part], _mm_madd_epi16(mixed[part], factors));
        }
        for (int part = 0; part < 4; part++)
            sums[part] = _mm_srai_epi32(sums[part], 14);
        __m128i low = _mm_packs_epi32(sums[0], sums[1]), high = _mm_packs_epi32(sums[2], sums[3]);
        _mm_storeu_si128((__m128i *)(made + byte), _mm_packus_epi16(low, high));
    }
#else
    for (int64_t byte = 0; byte < width; byte++) {
        int32_t sum = 0;
        for (int64_t next = 0; next < most; next++)
            sum += weights[next] * old[next * width + byte];
        made[byte] = clipped(sum);
    }
#endif
}

/* A line of the result, where it belongs. */
static void put(const Wanted *wanted, const unsigned char *line, int64_t row, unsigned char *made)
{
    int64_t width = wanted->out_width, area = width * wanted->out_height;

    for (int64_t column = 0; column < width; column++) {
        const unsigned char *pixel = line + 4 * (wanted->mirrored ? width - 1 - column : column);
        int64_t place = row * width + column;
        if (wanted->planes)
            for (int colour = 0; colour < 3; colour++)
                made[colour * area + place] = pixel[colour];
        else {
            memcpy(made + 4 * place, pixel, 3);
            made[4 * place + 3] = 255;
        }
    }
}

/* What is freed in the end, however it ends. */
typedef struct {
    Line columns, rows;
    unsigned char *lines, *narrow, *line;
} Work;

static unsigned reduction(const Wanted *wanted)
{
    unsigned by = SCALES;

    while (by > 1 && (wanted->width < by * wanted->out_width || wanted->height < by * wanted->out_height))
        by /= 2;
    return by;
}

static int64_t padded(const Wanted *wanted)
{
    return (4 * wanted->out_width + 15) / 16 * 16;
}

/* Decode what is needed, and make each row as narrow as it is wanted at once; may leave by longjmp. */
static int read_lines(const Jpeg *jpeg, Reader *reader, const Wanted *wanted, Work *work)
{
    double by = reduction(wanted);

    reader->scale = (unsigned)(SCALES / by);
    reader->of = SCALES;
    reader->colours = EXT_RGBX;
    jpeg->start(reader);
    int64_t all = reader->out_width, height = reader->out_height;
    Line *columns = &work->columns, *rows = &work->rows;
    if (!make_line(columns, (double)wanted->left / by, (double)wanted->width / by, all, wanted->out_width,
                   wanted->filter) ||
        !make_line(rows, (double)wanted->top / by, (double)wanted->height / by, height, wanted->out_height,
                   wanted->filter))
        return 0;
    /* A little more on each side: at an edge colours are spread otherwise than inside. */
    int64_t from = columns->first > MARGIN ? columns->first - MARGIN : 0;
    int64_t to = columns->last + MARGIN < all ? columns->last + MARGIN : all;
    unsigned begin = (unsigned)from, width = (unsigned)(to - from);
    if (width < all)
        jpeg->crop(reader, &begin, &width);
    int64_t stride = 4 * ((int64_t)reader->out_width + columns->most);
    int64_t count = rows->last - rows->first;
    work->lines = calloc(MOST_ROWS, (size_t)stride);
    work->narrow = calloc((size_t)(count + rows->most), (size_t)padded(wanted));
    work->line = malloc((size_t)padded(wanted));
    if (work->lines == NULL || work->narrow == NULL || work->line == NULL)
        return 0;
    if (rows->first > 0 && jpeg->skip(reader, (unsigned)rows->first) != (unsigned)rows->first)
        return 0;
    unsigned char *lines[MOST_ROWS];
    for (int row = 0; row < MOST_ROWS; row++)
        lines[row] = work->lines + row * stride;
    for (int64_t done = 0; done < count;) {
        int64_t left = count - done;
        unsigned got = jpeg->read_rows(reader, lines, (unsigned)(left < MOST_ROWS ? left : MOST_ROWS));
        if (got == 0)
            return 0;
        for (unsigned row = 0; row < got; row++)
            across(columns, lines[row] + 4 * (columns->first - begin),
                   work->narrow + (done + row) * padded(wanted), wanted->out_width);
        done += got;
    }
    return 1;
}

static int is_sensible(const Wanted *wanted, const Reader *reader)
{
    return (reader->components == 1 || reader->components == 3) && wanted->left >= 0 && wanted->top >= 0 &&
           wanted->width > 0 && wanted->height > 0 && wanted->left + wanted->width <= reader->width &&
           wanted->top + wanted->height <= reader->height && wanted->out_width > 0 &&
           wanted->out_height > 0 && wanted->out_width <= 65500 && wanted->out_height <= 65500 &&
           (wanted->filter == 2 || wanted->filter == 3);
}

/* The box of a picture, resized, as `made` has room for it; 0 for one that is left to Pillow: broken,
   of another kind, or with anything that libjpeg warns of. */
EXPORTED int rabaska_picture(const Jpeg *jpeg, const unsigned char *data, int64_t size,
                             const Wanted *wanted, unsigned char *made)
{
    Record record;
    Errors errors;
    Reader *reader = &record.known;
    Work work;
    Work *volatile kept = &work;
    volatile int whole = 0;

    memset(&work, 0, sizeof work);
    prepare(jpeg, &record, &errors);
    if (!setjmp(errors.failed)) {
        jpeg->create(reader, (int)jpeg->version, (size_t)jpeg->size);
        jpeg->from_memory(reader, data, (unsigned long)size);
        jpeg->read_header(reader, 1);
        whole = is_sensible(wanted, reader) && read_lines(jpeg, reader, wanted, &work) && !errors.warnings;
    } else
        whole = 0;
    jpeg->destroy(reader);
    for (int64_t row = 0; row < wanted->out_height && whole; row++) {
        const Line *rows = &kept->rows;
        int64_t width = padded(wanted);
        down(rows->weights + row * rows->most, rows->most, kept->narrow + rows->starts[row] * width, width,
             kept->line);
        put(wanted, kept->line, row, made);
    }
    free(kept->columns.starts);
    free(kept->columns.weights);
    free(kept->rows.starts);
    free(kept->rows.weights);
    free(kept->lines);
    free(kept->narrow);
    free(kept->line);
    return whole;
}
