// How the calls of cuBLAS and cuDNN begin. Their headers are not needed to build torch's
// users, so their types are void* and int here: status 0 is success in each.
#pragma once

#include "emulator/machine.h"

// Begins a call that can fail: it is counted, and faults may be put on it by this name
// (make_libraries.py finds them so).
#define HPO_LIBRARY_CALL(name) \
  if (const int fault = hpoEmulatedSilent(#name); fault != 0) return fault

// The same for a call that writes device memory with what nobody knows (device_values.h). A call
// that knows which ranges it writes begins with HPO_LIBRARY_CALL, and remembers or forgets those.
#define HPO_COMPUTE_CALL(name) \
  if (const int fault = hpoEmulatedCompute(#name); fault != 0) return fault
