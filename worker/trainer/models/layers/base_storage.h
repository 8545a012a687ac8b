// How the linear layers and embeddings of a frozen model are stored when they are made.
#pragma once

#include <memory>

#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/stored_weight.h"

namespace hpo::trainer {

// While one lives, layers that the calling thread makes are stored as it says: linear layers'
// weights as StoredWeight, embeddings in bfloat16. Does nothing with kFloat32. A scope, so that
// layers of 16 or 4 bits are never there in 32.
class BaseStorageScope {
 public:
  // `type`: kFloat32, kBFloat16 or kNf4.
  BaseStorageScope(memory::FrozenType type, torch::Device device);
  ~BaseStorageScope();
  BaseStorageScope(const BaseStorageScope&) = delete;
  BaseStorageScope& operator=(const BaseStorageScope&) = delete;

  // A weight as the scope in force stores it; null: a parameter as any other.
  static std::shared_ptr<StoredWeight> MakeWeight(at::IntArrayRef shape);
  static torch::ScalarType EmbeddingType();

 private:
  memory::FrozenType type_;
  torch::Device device_;
  torch::Tensor table_;  // kNf4
  const BaseStorageScope* before_;
};

}  // namespace hpo::trainer
