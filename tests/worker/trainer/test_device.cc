#include "tests/worker/trainer/test_device.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace hpo::trainer {

std::string TestDeviceName() {
  const char* const name = std::getenv("HPO_TEST_DEVICE");
  return name == nullptr ? "cpu" : name;
}

TrialDevice& TestDevice() {
  static TrialDevice* const device = [] {
    at::set_num_threads(1);  // tests run side by side
    HPO_CHECK(InitLog("off", /*json=*/false).ok());
    absl::StatusOr<TrialDevice> opened = OpenTrialDevice(TestDeviceName());
    if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
    HPO_CHECK(opened.ok());
    return new TrialDevice(*std::move(opened));
  }();
  return *device;
}

}  // namespace hpo::trainer
