// SPDX-License-Identifier: Apache-2.0
// ALSA's library, and what of it Swift cannot import. Its own calls answer with a value or a
// negative errno.
#ifndef CALSA_SHIM_H
#define CALSA_SHIM_H

#include <alsa/asoundlib.h>

static inline void CALSA_ignore(const char *file, int line, const char *function, int code,
                                const char *format, ...) {
  (void)file, (void)line, (void)function, (void)code, (void)format;
}

/// The library prints what goes wrong on stderr, which belongs to the command; the codes that it
/// answers with say the same. The handler is variadic, and a global of the library: call this
/// once, before the first other call.
static inline void CALSA_silence(void) { snd_lib_error_set_handler(CALSA_ignore); }

#endif
