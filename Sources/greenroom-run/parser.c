// Reads JSON-RPC messages, of which only the kind and the ID matter.
#include "parser.h"

#include <string.h>

enum { NOTHING, ID, METHOD, CANCELLED };
/// Of JSON. A program that nests deeper is not one that is to sleep.
static const int deepest = 1000;

static void begin_text(struct parser *parser) {
    parser->length = 0;
    parser->hash = 0xcbf29ce484222325; // FNV-1a
}

static void add(struct parser *parser, char byte) {
    if (parser->length < sizeof parser->text - 1)
        parser->text[parser->length] = byte;
    parser->length++;
    parser->hash = (parser->hash ^ (unsigned char)byte) * 0x100000001b3;
}

static bool is_text(const struct parser *parser, const char *text) {
    return parser->length == strlen(text) && parser->length < sizeof parser->text
        && memcmp(parser->text, text, parser->length) == 0;
}

static void end_capture(struct parser *parser) {
    // An ID of null is that of an answer to a message that could not be read.
    bool is_value = parser->length > 0 && !is_text(parser, "null");
    switch (is_value ? parser->capture : NOTHING) {
    case ID:
        parser->has_id = true;
        parser->id = parser->hash;
        break;
    case METHOD: {
        size_t length = parser->length < sizeof parser->method ? parser->length : sizeof parser->method - 1;
        // Without its first character, a quotation mark.
        memcpy(parser->method, parser->text + 1, length - 1);
        parser->method[length - 1] = 0;
        parser->has_method = true;
        break;
    }
    case CANCELLED:
        parser->has_cancelled = true;
        parser->cancelled = parser->hash;
        break;
    default: break;
    }
    parser->capture = NOTHING;
}

/// The string that was read last is the key of a value.
static void key_ended(struct parser *parser) {
    int depth = parser->depth - parser->base;
    if (depth == 1 && is_text(parser, "id"))
        parser->capture = ID;
    else if (depth == 1 && is_text(parser, "method"))
        parser->capture = METHOD;
    else if (depth == 2 && is_text(parser, "requestId"))
        parser->capture = CANCELLED;
    else
        return;
    begin_text(parser);
}

static void opened(struct parser *parser, char byte) {
    parser->capture = NOTHING;
    if (parser->depth == 0)
        parser->base = byte == '[';
    parser->depth++;
    if (parser->depth > deepest)
        parser->is_broken = true;
    if (byte == '{' && parser->depth == parser->base + 1)
        parser->has_id = parser->has_method = parser->has_cancelled = false;
}

static void in_string(struct parser *parser, char byte) {
    if (byte == '"' && !parser->is_escaped) {
        parser->in_string = false;
        if (parser->capture)
            end_capture(parser);
        return;
    }
    parser->is_escaped = byte == '\\' && !parser->is_escaped;
    add(parser, byte);
}

bool parser_read(struct parser *parser, char byte) {
    if (parser->is_broken)
        return false;
    if (parser->in_string) {
        in_string(parser, byte);
        return false;
    }
    switch (byte) {
    case '"':
        // Between messages there are headers, and no strings.
        if (parser->depth == 0)
            return false;
        parser->in_string = true;
        begin_text(parser);
        // A number as an ID is another one than a string with it.
        if (parser->capture)
            add(parser, byte);
        return false;
    case ':': key_ended(parser); return false;
    case '{':
    case '[': opened(parser, byte); return false;
    case '}':
    case ']':
        if (parser->depth == 0)
            return false;
        if (parser->capture)
            end_capture(parser);
        parser->depth--;
        return byte == '}' && parser->depth == parser->base;
    case ',':
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        if (parser->capture && parser->length > 0)
            end_capture(parser);
        return false;
    default:
        if (parser->capture)
            add(parser, byte);
        return false;
    }
}
