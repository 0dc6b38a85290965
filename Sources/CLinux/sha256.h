#pragma once

// SHA-256 (FIPS 180-4), for the child of spawn.c: no allocation, no libc. The kernel's own (AF_ALG) is missing in many kernels
// and forbidden in many sandboxes.

#include "syscalls.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SHA256_SIZE = 32,
    SHA256_BLOCK = 64,
};

struct sha256 {
    uint32_t state[8];
    uint64_t length; // in bytes
    uint8_t block[SHA256_BLOCK];
};

CHILD void sha256_begin(struct sha256 *hash) {
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    for (int i = 0; i < 8; i++)
        hash->state[i] = start[i];
    hash->length = 0;
}

RAW uint32_t sha256_rotated(uint32_t word, int count) { return word >> count | word << (32 - count); }

CHILD void sha256_compress(uint32_t *state, const uint8_t *block) {
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
        0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
        0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
        0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
    };
    uint32_t words[64];
    for (int i = 0; i < 16; i++, block += 4)
        words[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (int i = 16; i < 64; i++) {
        uint32_t old = words[i - 15], recent = words[i - 2];
        uint32_t first = sha256_rotated(old, 7) ^ sha256_rotated(old, 18) ^ old >> 3;
        uint32_t second = sha256_rotated(recent, 17) ^ sha256_rotated(recent, 19) ^ recent >> 10;
        words[i] = words[i - 16] + first + words[i - 7] + second;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t sum = sha256_rotated(e, 6) ^ sha256_rotated(e, 11) ^ sha256_rotated(e, 25);
        uint32_t first = h + sum + ((e & f) ^ (~e & g)) + constants[i] + words[i];
        sum = sha256_rotated(a, 2) ^ sha256_rotated(a, 13) ^ sha256_rotated(a, 22);
        uint32_t second = sum + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

CHILD void sha256_add(struct sha256 *hash, const uint8_t *bytes, size_t count) {
    size_t filled = hash->length % SHA256_BLOCK;
    hash->length += count;
    while (count > 0) {
        if (filled == 0 && count >= SHA256_BLOCK) {
            sha256_compress(hash->state, bytes);
            bytes += SHA256_BLOCK;
            count -= SHA256_BLOCK;
            continue;
        }
        hash->block[filled++] = *bytes++;
        count--;
        if (filled == SHA256_BLOCK) {
            sha256_compress(hash->state, hash->block);
            filled = 0;
        }
    }
}

CHILD void sha256_end(struct sha256 *hash, uint8_t *digest) {
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = hash->length * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    // Up to the last 8 bytes of a block.
    sha256_add(hash, padding, 1 + (SHA256_BLOCK - 1 + 56 - hash->length % SHA256_BLOCK) % SHA256_BLOCK);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < SHA256_SIZE; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
