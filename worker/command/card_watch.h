// What a program and its children hold of a card's memory, as the driver tells it: the library's
// context and what its allocator keeps count, too.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

#include "common/base/bytes.h"
#include "common/device/gpu_probe.h"

namespace hpo::command {

// One thread.
class CardWatch {
 public:
  // `before`: the card just before the program starts; `probe` outlives this. `same_numbers`:
  // whether the driver numbers processes as we do, which it does outside of containers.
  CardWatch(GpuProbe& probe, const GpuState& before, bool same_numbers);

  // What is held now. `program`: its processes. In a container, where none of them is listed, those
  // that were not there before are taken for it; where the driver does not tell their bytes, what
  // the card has in use beyond what it had. 0 where the card does not answer.
  Bytes Held(const std::vector<pid_t>& program);

 private:
  GpuProbe& probe_;
  const std::string uuid_;
  const Bytes used_before_;
  std::set<int64_t> strangers_;
  bool same_numbers_;
};

// Whether this process is outside of containers: in the first namespace of process numbers.
bool HasTheDriversProcessNumbers();

}  // namespace hpo::command
