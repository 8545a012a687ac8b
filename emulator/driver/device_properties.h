// What a device is like, for the runtime and the driver: part of libcudart and of libcuda.
#pragma once

#include <cuda_runtime_api.h>

namespace hpo::emulator {

// `device` must exist.
cudaDeviceProp DescribeDevice(int device);

// An attribute by its number, which is the same in the runtime and the driver. Ends the program
// with the name of the call if nobody has thought about the attribute yet.
int DeviceAttribute(const char* call, int attribute, int device);

}  // namespace hpo::emulator
