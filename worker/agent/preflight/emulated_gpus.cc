#include "worker/agent/preflight/emulated_gpus.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/protocol/preflight.h"

namespace hpo::agent {
namespace {

// As the driver calls it, without what would begin a comment or another line; an emulated GPU says
// by itself that it is one.
std::string ProductOf(const DeviceProfile& gpu) {
  return absl::StrReplaceAll(gpu.name, {{" (emulated)", ""}, {"#", " "}, {"\n", " "}});
}

}  // namespace

std::vector<DeviceProfile> GpusOfDryRun(const DeviceProfile& own,
                                        const std::vector<DeviceProfile>& others) {
  std::vector<DeviceProfile> gpus = {own};
  std::set<int64_t> threads = {0, ResidentThreads(own)};
  for (const DeviceProfile& other : others) {
    if (gpus.size() > kMostOthers) break;
    const bool answers = other.kind == own.kind && other.capability == own.capability &&
                         ResidentThreads(other) < ResidentThreads(own);
    if (answers && threads.insert(ResidentThreads(other)).second) gpus.push_back(other);
  }
  return gpus;
}

std::string EmulatedName(size_t number) { return absl::StrCat("gpu-", number); }

std::string DescribeEmulatedGpus(const std::vector<DeviceProfile>& gpus) {
  std::string text;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const DeviceProfile& gpu = gpus[i];
    absl::StrAppend(&text, "name = ", EmulatedName(i), "\nproduct = ", ProductOf(gpu),
                    "\ncapability = ", gpu.capability, "\nmultiprocessors = ", gpu.multiprocessors,
                    "\nmemory = ", gpu.total.count, "B\n");
  }
  return text;
}

}  // namespace hpo::agent
