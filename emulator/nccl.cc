// libnccl: torch asks for its version; nothing else is emulated.
#include "emulator/library_call.h"

extern "C" int ncclGetVersion(int* version) {
  HPO_LIBRARY_CALL(ncclGetVersion);
  *version = 22809;
  return 0;
}
