// Launches of kernels, through the runtime or the driver. Their shape is checked; nothing runs.
#pragma once

#include <cstddef>
#include <string>

namespace hpo::emulator {

struct LaunchShape {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// CUDA's codes of what a launch may fail with, besides StreamCode.
constexpr int kLaunchTooMuchShared = 1;         // cudaErrorInvalidValue
constexpr int kLaunchOutOfMemory = 2;           // cudaErrorMemoryAllocation: no room for a context
constexpr int kLaunchInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration

struct Launch {
  std::string kernel;  // its name in the log
  LaunchShape grid;
  LaunchShape block;
  size_t shared_bytes = 0;
  void* stream = nullptr;
};

// Enqueues a launch on the calling thread's device. Returns 0 or one of CUDA's codes.
int EnqueueLaunch(const Launch& launch);

// Shared memory in bytes that one block of a kernel may use on the calling thread's device.
size_t SharedBytesPerBlock();

// Blocks of a kernel that fit on one multiprocessor of the calling thread's device, by threads and
// shared memory; registers are not known.
int BlocksPerMultiprocessor(int block_size, size_t shared_bytes);

}  // namespace hpo::emulator
