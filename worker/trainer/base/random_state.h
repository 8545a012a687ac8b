// The state of a device's random numbers, from which dropout is drawn.
#pragma once

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// What it was when this was made. Allocates no tensor, so that it works where memory has run out.
class RandomState {
 public:
  explicit RandomState(torch::Device device);

  // Makes it the device's again.
  void Restore() const;

 private:
  mutable at::Generator generator_;
  at::Generator state_;
};

// Puts the random state of `device` back to what it was, at the end of its life.
class RandomStateKeeper {
 public:
  explicit RandomStateKeeper(torch::Device device) : before_(device) {}
  ~RandomStateKeeper();
  RandomStateKeeper(const RandomStateKeeper&) = delete;
  RandomStateKeeper& operator=(const RandomStateKeeper&) = delete;

 private:
  const RandomState before_;
};

}  // namespace hpo::trainer
