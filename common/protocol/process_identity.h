// Which process of which machine: unlike a process number, no two processes ever share it.
#pragma once

#include <cstdint>
#include <string>

namespace hpo {

struct ProcessIdentity {
  std::string boot_id;     // of the machine since it was started; empty: nothing is known
  std::string namespaces;  // "pid:[4026531836] time:[4026531834]": where the two below count
  int64_t pid = 0;
  int64_t start_ticks = 0;  // clock ticks from the machine's start to its own
  bool operator==(const ProcessIdentity&) const = default;
};

// Of this process. Empty where /proc does not say, or is that of another namespace.
ProcessIdentity OwnProcess();

// Whether `process`, of the same machine and the same namespaces as `own`, has ended. False also
// where that cannot be known from here.
bool HasEnded(const ProcessIdentity& process, const ProcessIdentity& own);

}  // namespace hpo
