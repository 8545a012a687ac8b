// NCCL's groups: calls between ncclGroupStart and ncclGroupEnd are done together, so that one
// thread can call for several ranks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/nccl/communicator.h"

namespace hpo::emulator::nccl {

// A call in three steps. Within a group, a step of all calls comes before the next step of any. A
// step that is empty is left out.
using Steps = std::array<std::function<Outcome()>, 3>;

// Does the steps, or keeps them for the end of the calling thread's group. Returns NCCL's code, and
// keeps what LastError says.
int Run(Steps steps);

void StartGroup();
int EndGroup();
// Ends the group and does nothing of it.
int DropGroup();

// Counts a call. NCCL's code by a fault on it or after a sticky one, 0 where it goes on.
int Enter(const char* call);

// Keeps the text for LastError, and returns the code.
int Report(const Outcome& outcome);
// Of the last call that failed in this process. Valid until the calling thread asks again.
const char* LastError();

// The device of the calling thread.
int ThisDevice();

// Communicators by their handles, which are never zero.
void* NewHandle(std::shared_ptr<Communicator> communicator);
std::shared_ptr<Communicator> Find(void* handle);
void DropHandle(void* handle);

}  // namespace hpo::emulator::nccl

// Begins a call that can fail: it is counted, and faults may be put on it by this name
// (make_libraries.py finds them so).
#define HPO_NCCL_CALL(name) \
  if (const int fault = hpo::emulator::nccl::Enter(#name); fault != 0) return fault
