// SPDX-License-Identifier: Apache-2.0
// libasound, with shims for what Swift cannot import. Shims return a value or a negative errno.
#ifndef CALSA_SHIM_H
#define CALSA_SHIM_H

#include <alsa/asoundlib.h>

static inline void CALSA_ignore(const char *file, int line, const char *function, int code,
                                const char *format, ...) {
  (void)file, (void)line, (void)function, (void)code, (void)format;
}

/// libasound prints errors to stderr, which belongs to the command; its return codes suffice. The
/// handler is variadic and global in the library. Call this function once, before any other call.
static inline void CALSA_silence(void) { snd_lib_error_set_handler(CALSA_ignore); }

#endif
