#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Reads JSON-RPC messages byte by byte, without keeping them. Only their kind and their ID matter.
struct parser {
    int depth;
    int base; // the depth of a message: 1 within a batch
    bool in_string, is_escaped;
    bool is_broken; // deeper than can be counted: nothing is known from here on
    int capture;
    // The beginning, the length and the hash of the string or value that was read last.
    char text[40];
    size_t length;
    uint64_t hash;
    // The message so far. An ID is the hash of its text.
    bool has_id, has_method, has_cancelled;
    uint64_t id, cancelled;
    char method[40];
};

/// Reads one byte.
/// - Returns: whether it ends a message.
bool parser_read(struct parser *parser, char byte);
