// Tensors of a golden .safetensors file, for comparison.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/test_paths.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {

inline std::string GoldenPath(const std::string& name) {
  return SourcePath("tests/golden/" + name);
}

// A copy of `name`; float32 or int64. Fails the test when the file has no such tensor.
inline torch::Tensor GoldenTensor(const SafetensorsFile& file, const std::string& name) {
  const TensorView* view = file.Find(name);
  if (view == nullptr) {
    ADD_FAILURE() << file.origin() << " has no tensor " << name;
    return {};
  }
  const auto type = view->type == TensorType::kInt64 ? torch::kInt64 : torch::kFloat32;
  const torch::Tensor copy = at::empty(view->shape, torch::TensorOptions(type));
  std::memcpy(copy.mutable_data_ptr(), view->bytes.data(), view->bytes.size());
  return copy;
}

inline double LargestDifference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// A test of the model of this name.
inline std::string ModelTestName(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace hpo::trainer
