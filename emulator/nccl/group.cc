#include "emulator/nccl/group.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "emulator/machine.h"

extern "C" __attribute__((weak)) int cudaGetDevice(int* device);

namespace hpo::emulator::nccl {
namespace {

struct Shared {
  std::mutex mutex;
  std::string last_error;
  std::map<void*, std::shared_ptr<Communicator>> communicators;
};

Shared& All() {
  static auto* const all = new Shared;
  return *all;
}

thread_local int t_depth = 0;
thread_local std::vector<Steps> t_group;

int Do(const std::vector<Steps>& calls) {
  for (size_t step = 0; step < std::tuple_size_v<Steps>; ++step) {
    for (const Steps& call : calls) {
      if (!call[step]) continue;
      if (const Outcome outcome = call[step](); !outcome.ok()) return Report(outcome);
    }
  }
  return kSuccess;
}

}  // namespace

int Run(Steps steps) {
  if (t_depth == 0) return Do({std::move(steps)});
  t_group.push_back(std::move(steps));
  return kSuccess;
}

void StartGroup() { ++t_depth; }

int EndGroup() {
  if (t_depth == 0) return Report({kInvalidUsage, "ncclGroupEnd without ncclGroupStart"});
  if (--t_depth > 0) return kSuccess;
  return Do(std::exchange(t_group, {}));
}

int DropGroup() {
  if (t_depth == 0) return Report({kInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart"});
  if (--t_depth == 0) t_group.clear();
  return kSuccess;
}

int Enter(const char* call) {
  const int fault = hpoEmulatedSilent(call);
  return Machine::Get().sticky() != 0 ? kUnhandledCudaError : fault;
}

int Report(const Outcome& outcome) {
  if (outcome.ok()) return kSuccess;
  const std::lock_guard<std::mutex> lock(All().mutex);
  if (All().last_error != outcome.text) {
    std::fprintf(stderr, "emulated NCCL: %s\n", outcome.text.c_str());
  }
  All().last_error = outcome.text;
  return outcome.code;
}

const char* LastError() {
  thread_local std::string text;
  const std::lock_guard<std::mutex> lock(All().mutex);
  text = All().last_error;
  return text.c_str();
}

int ThisDevice() {
  int device = 0;
  if (cudaGetDevice != nullptr) cudaGetDevice(&device);
  return device;
}

void* NewHandle(std::shared_ptr<Communicator> communicator) {
  void* const handle = communicator.get();
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().communicators[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> Find(void* handle) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().communicators.find(handle);
  return found == All().communicators.end() ? nullptr : found->second;
}

void DropHandle(void* handle) {
  std::shared_ptr<Communicator> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().communicators.find(handle);
  if (found == All().communicators.end()) return;
  dropped = std::move(found->second);
  All().communicators.erase(found);
}

}  // namespace hpo::emulator::nccl
