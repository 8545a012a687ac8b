// What a backward pass leaves behind when it throws.
#pragma once

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Frees the tasks of failed backward passes of this thread on `device`.
//
// When a backward pass throws, the operations that were ready but had not run stay in torch's queue
// (the calling thread's, or the device's), each with its part of the graph and so its share of
// memory. Torch drops them when it comes to them, but newer operations always go first, so that
// may be never. This runs an empty operation that goes last: once it has run, the queue is empty.
// Allocates no tensor. Throws what torch throws when the device is lost.
// Source: torch/csrc/autograd/engine.{h,cpp}, CompareNodeTaskTime and thread_main.
void DropFailedBackward(torch::Device device);

}  // namespace hpo::trainer
