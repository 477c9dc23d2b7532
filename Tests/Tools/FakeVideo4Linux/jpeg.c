// SPDX-License-Identifier: Apache-2.0
// A baseline JPEG of uniform gray, padded by comments to any length.
#include "model.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *put(uint8_t *at, const void *bytes, size_t count) {
  memcpy(at, bytes, count);
  return at + count;
}

/// Writes a comment segment of `total` bytes, at least 4.
static uint8_t *put_comment(uint8_t *at, uint32_t total) {
  uint32_t length = total - 2;
  at[0] = 0xFF;
  at[1] = 0xFE;
  at[2] = (uint8_t)(length >> 8);
  at[3] = (uint8_t)length;
  memset(at + 4, 'x', total - 4);
  return at + total;
}

uint8_t *make_gray_jpeg(
  uint32_t width, uint32_t height, uint32_t bytes, uint32_t *length, uint32_t *number
) {
  // Each block has two bits: DC difference 0 and end of block, with one-bit codes.
  uint32_t blocks = ((width + 7) / 8) * ((height + 7) / 8);
  uint32_t scan = (blocks * 2 + 7) / 8;
  uint32_t fixed = 2 + 16 + 69 + 13 + 44 + 10 + scan + 2;
  uint32_t total = bytes > fixed + 8 ? bytes : fixed;
  uint8_t *jpeg = malloc(total + 70000);
  if (jpeg == NULL) return NULL;
  uint8_t *at = put(jpeg, "\xFF\xD8", 2);
  *number = (uint32_t)(at - jpeg) + 8;
  at = put_comment(at, 16);
  for (uint32_t left = total - fixed; left >= 4;) {
    uint32_t part = left > 60000 ? 60000 : left;
    at = put_comment(at, part);
    left -= part;
  }
  at = put(at, "\xFF\xDB\x00\x43\x00", 5);
  memset(at, 16, 64);
  at += 64;
  uint8_t frame[13] = {
    0xFF, 0xC0, 0, 11, 8, (uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8),
    (uint8_t)width, 1, 1, 0x11, 0,
  };
  at = put(at, frame, sizeof frame);
  for (int table = 0; table < 2; table++) {
    // A Huffman table with a single one-bit code, for the value 0.
    uint8_t huffman[22] = {0xFF, 0xC4, 0, 20, (uint8_t)(table << 4), 1};
    at = put(at, huffman, sizeof huffman);
  }
  at = put(at, "\xFF\xDA\x00\x08\x01\x01\x00\x00\x3F\x00", 10);
  memset(at, 0, scan);
  // The remaining bits of the last byte are ones.
  if (blocks * 2 % 8 != 0) at[scan - 1] = (uint8_t)(0xFF >> (blocks * 2 % 8));
  at += scan;
  at = put(at, "\xFF\xD9", 2);
  *length = (uint32_t)(at - jpeg);
  return jpeg;
}
