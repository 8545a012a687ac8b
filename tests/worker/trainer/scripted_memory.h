// The CPU's memory with readings that a test makes up: a card in a state that a CPU is never in.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

class ScriptedMemory final : public DeviceMemory {
 public:
  explicit ScriptedMemory(DeviceMemory& real) : real_(real) {}

  // What every reading passes through.
  std::function<void(MemoryUse&)> on_read = [](MemoryUse&) {};
  // What the record of every refusal passes through.
  std::function<void(RefusedAllocation&)> on_refused = [](RefusedAllocation&) {};
  // The answer of Relieve, and what was asked of it.
  bool can_relieve = false;
  std::vector<Relief> reliefs;
  int releases = 0;  // times that the cache went back

  MemoryUse Read() const override {
    MemoryUse use = real_.Read();
    on_read(use);
    return use;
  }
  void ResetPeak() override { real_.ResetPeak(); }
  void SetLimit(Bytes limit) override { real_.SetLimit(limit); }
  void ReleaseCache() override {
    ++releases;
    real_.ReleaseCache();
  }
  bool Relieve(Relief relief) override {
    reliefs.push_back(relief);
    return can_relieve;
  }
  std::optional<RefusedAllocation> TakeRefused() override {
    auto refused = real_.TakeRefused();
    if (refused.has_value()) on_refused(*refused);
    return refused;
  }
  DeviceDescription Describe() const override { return real_.Describe(); }

 private:
  DeviceMemory& real_;
};

}  // namespace hpo::trainer
