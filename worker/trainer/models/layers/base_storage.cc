#include "worker/trainer/models/layers/base_storage.h"

namespace hpo::trainer {
namespace {

thread_local const BaseStorageScope* current = nullptr;

}  // namespace

BaseStorageScope::BaseStorageScope(memory::FrozenType type, torch::Device device)
    : type_(type), device_(device), before_(current) {
  if (type == memory::FrozenType::kNf4) table_ = Nf4Table(device);
  current = type == memory::FrozenType::kFloat32 ? nullptr : this;
}

BaseStorageScope::~BaseStorageScope() { current = before_; }

std::shared_ptr<StoredWeight> BaseStorageScope::MakeWeight(at::IntArrayRef shape) {
  if (current == nullptr) return nullptr;
  return std::make_shared<StoredWeight>(current->type_, shape, current->device_, current->table_);
}

torch::ScalarType BaseStorageScope::EmbeddingType() {
  return current == nullptr ? torch::kFloat32 : torch::kBFloat16;
}

}  // namespace hpo::trainer
