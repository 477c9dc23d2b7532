// SPDX-License-Identifier: Apache-2.0
//
// All kernels, for the processor that the including file selects.

// Products and sums are rounded one by one everywhere, so that every processor gives the same
// bytes.
#pragma STDC FP_CONTRACT OFF

#include "primitives.h"
#include "search.h"
#include "refine.h"
#include "compare.h"
#include "edges.h"
#include "project.h"
#include "render.h"

#define OF_TABLE \
  { \
    .load = OF_NAME(load), .shrink = OF_NAME(shrink), .compare = OF_NAME(compare), \
    .search = OF_NAME(search), .refine = OF_NAME(refine), .judge = OF_NAME(judge), \
    .markStatic = OF_NAME(markStatic), .keepOverlays = OF_NAME(keepOverlays), .splat = OF_NAME(splat), \
    .fillHoles = OF_NAME(fillHoles), .choose = OF_NAME(choose), .weigh = OF_NAME(weigh), \
    .render = OF_NAME(render) \
  }
