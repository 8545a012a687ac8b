// The device that tests train on.
#pragma once

#include <string>

#include "worker/trainer/device/trial_device.h"

namespace hpo::trainer {

// HPO_TEST_DEVICE, else "cpu": tests of memory run on an emulated card too.
std::string TestDeviceName();

// That device, a CPU with one thread; opened once for the process, as a trainer does.
TrialDevice& TestDevice();

}  // namespace hpo::trainer
