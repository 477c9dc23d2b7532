// SPDX-License-Identifier: Apache-2.0
//
// Keeps the libraries in a process from waiting forever and from printing.
//
// This target exists for one reason: only C can replace pthread_create(3) and stderr, by which other
// libraries do both.

#ifndef CLIBRARYGUARD_H
#define CLIBRARYGUARD_H

/// Sets the function that ends the process if libdispatch cannot start a thread for a second.
///
/// Libdispatch itself would try again forever. The function is called on the thread that needs another
/// one. All detached threads count as those of libdispatch. Other libraries start joinable threads, and
/// report a failure.
void lg_end_without_threads(void (*_Nonnull end)(void));

/// Drops the lines that x264, x265, libgomp and a failed allocation in Swift print to stderr, such as `x264 [error]: malloc of size
/// 434176 failed`.
///
/// Their functions also return the failure. Call this before threads start.
void lg_silence_libraries(void);

#endif
