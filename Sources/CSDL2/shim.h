// SPDX-License-Identifier: Apache-2.0
// SDL2 needs no shims; this header only includes it. SDL must not define the program's main.
#ifndef CSDL2_SHIM_H
#define CSDL2_SHIM_H

#define SDL_MAIN_HANDLED
#include <SDL2/SDL.h>

#endif
