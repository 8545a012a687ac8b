// What the sizes of a program's allocations depend on: a recording of them
// (python/dryrun/hpo_dryrun/events.py) can be read for another GPU where these calls are known.
// Thread-safe.
#pragma once

#include <cstddef>

namespace hpo::emulator {

// At the registration of a kernel, before main.
void NoteKernel(const void* function, const char* name);

// At a launch of `grid_y` blocks for each of `grid_x` groups of results, of `threads` each. What
// counts are torch's reductions in which several blocks share one result: how many do depends on
// the GPU's multiprocessors, and so does the memory in which they meet.
void NoteLaunch(const void* function, int device, unsigned grid_x, unsigned grid_y,
                unsigned threads);

// At a call that gives cuBLAS a workspace, whose size depends on the GPU.
void NoteWorkspace(const void* address);

}  // namespace hpo::emulator

extern "C" {

// Removes the launches so far and writes each as four numbers: device, grid_x, grid_y, threads; at
// most `capacity` numbers. Returns how many launches there were. None are kept before the first
// call.
size_t HpoTakeSharedSums(int* numbers, size_t capacity);

// Writes the addresses of workspaces that were not written before, at most `capacity`. Returns
// their number.
size_t HpoTakeWorkspaces(const void** addresses, size_t capacity);

}  // extern "C"
