#include "runtime/media/helper/helper.h"

#include <ctype.h>
#include <string.h>

struct magic {
    const char *bytes;
    size_t length;
    size_t at;
    const char *name;
    enum burin_file file; /* unknown: recognized in order to be refused by name */
};

#define MAGIC(text, at, name, file)                                                        \
    {                                                                                      \
        text, sizeof(text) - 1, at, name, file                                             \
    }

static const struct magic magics[] = {
    MAGIC("\xff\xd8\xff", 0, "a JPEG picture", BURIN_FILE_JPEG),
    MAGIC("\x89PNG\r\n\x1a\n", 0, "a PNG picture", BURIN_FILE_PNG),
    MAGIC("WEBP", 8, "a WebP picture", BURIN_FILE_WEBP),
    MAGIC("ftypheic", 4, "a HEIC picture", BURIN_FILE_UNKNOWN),
    MAGIC("ftypheix", 4, "a HEIC picture", BURIN_FILE_UNKNOWN),
    MAGIC("ftypmif1", 4, "a HEIF picture", BURIN_FILE_UNKNOWN),
    MAGIC("ftypavif", 4, "an AVIF picture", BURIN_FILE_UNKNOWN),
    MAGIC("ftyp", 4, "an MP4 video", BURIN_FILE_MOV),
    MAGIC("moov", 4, "a QuickTime video", BURIN_FILE_MOV),
    MAGIC("mdat", 4, "a QuickTime video", BURIN_FILE_MOV),
    MAGIC("wide", 4, "a QuickTime video", BURIN_FILE_MOV),
    MAGIC("\x1a\x45\xdf\xa3", 0, "a Matroska video", BURIN_FILE_MATROSKA),
    MAGIC("AVI ", 8, "an AVI video", BURIN_FILE_AVI),
    MAGIC("WAVE", 8, "a WAVE recording", BURIN_FILE_UNKNOWN),
    MAGIC("GIF8", 0, "a GIF picture", BURIN_FILE_UNKNOWN),
    MAGIC("BM", 0, "a BMP picture", BURIN_FILE_UNKNOWN),
    MAGIC("II*\0", 0, "a TIFF picture", BURIN_FILE_UNKNOWN),
    MAGIC("MM\0*", 0, "a TIFF picture", BURIN_FILE_UNKNOWN),
    MAGIC("\xff\x0a", 0, "a JPEG XL picture", BURIN_FILE_UNKNOWN),
    MAGIC("\0\0\0\x0cJXL ", 0, "a JPEG XL picture", BURIN_FILE_UNKNOWN),
    MAGIC("\0\0\0\x0cjP  ", 0, "a JPEG 2000 picture", BURIN_FILE_UNKNOWN),
    MAGIC("8BPS", 0, "a Photoshop picture", BURIN_FILE_UNKNOWN),
    MAGIC("%PDF", 0, "a PDF document", BURIN_FILE_UNKNOWN),
    MAGIC("%!PS", 0, "a PostScript document", BURIN_FILE_UNKNOWN),
    MAGIC("PK\x03\x04", 0, "a ZIP archive", BURIN_FILE_UNKNOWN),
    MAGIC("ID3", 0, "an MP3 recording", BURIN_FILE_UNKNOWN),
    MAGIC("OggS", 0, "an Ogg recording", BURIN_FILE_UNKNOWN),
    MAGIC("fLaC", 0, "a FLAC recording", BURIN_FILE_UNKNOWN),
    MAGIC("GGUF", 0, "a GGUF file", BURIN_FILE_UNKNOWN),
};

static const struct magic *find(struct burin_bytes file)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct magic *magic = &magics[i];
        const bool is_riff =
                magic->at != 8 || (file.length >= 4 && memcmp(file.at, "RIFF", 4) == 0);
        if (is_riff && file.length >= magic->at + magic->length &&
            memcmp(file.at + magic->at, magic->bytes, magic->length) == 0)
            return magic;
    }
    return NULL;
}

enum burin_file burin_detect(struct burin_bytes file)
{
    const struct magic *magic = find(file);
    return magic ? magic->file : BURIN_FILE_UNKNOWN;
}

/* "an HTML page" for what begins with white space and <html or <!doctype. */
static const char *name_text(struct burin_bytes file)
{
    size_t at = 0;
    while (at < file.length && at < 512 && (isspace(file.at[at]) || file.at[at] >= 0xbb))
        at++; /* a byte order mark is EF BB BF */
    const char *begin = (const char *)file.at + at;
    const size_t left = file.length - at;
    if ((left >= 5 && strncasecmp(begin, "<html", 5) == 0) ||
        (left >= 9 && strncasecmp(begin, "<!doctype", 9) == 0))
        return "an HTML page";
    if ((left >= 4 && strncasecmp(begin, "<svg", 4) == 0) ||
        (left >= 5 && strncasecmp(begin, "<?xml", 5) == 0))
        return "an XML or SVG text";
    return NULL;
}

enum burin_status burin_refuse_file(
        struct burin_bytes file, const char *wanted, struct burin_error *err)
{
    const struct magic *magic = find(file);
    const char *name = magic ? magic->name : name_text(file);
    const bool wants_picture = strcmp(wanted, "picture") == 0;
    if (!file.length)
        return burin_fail(err, BURIN_EFORMAT, "an empty file, no %s", wanted);
    if (magic && magic->file != BURIN_FILE_UNKNOWN)
        return burin_fail(
                err, BURIN_EFORMAT, "%s, no %s: give it with %s", name, wanted,
                wants_picture ? "--video" : "--image");
    return burin_fail(
            err, BURIN_EFORMAT, "%s; %s are read",
            name            ? name
            : wants_picture ? "no picture"
                            : "no video",
            wants_picture ? "JPEG, PNG and WebP"
                          : "MP4, QuickTime, Matroska, WebM and AVI");
}
