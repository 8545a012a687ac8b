// The descriptors of cuDNN's calls before the graph API that hold what a program asks for again.
#pragma once

#include <vector>

namespace hpo::emulator::cudnn {

// cudnnTensorDescriptor_t.
struct TensorDescriptor {
  int data_type = 0;
  std::vector<int> sizes;
  std::vector<int> strides;  // elements
};

constexpr int kChannelsLast = 1;  // cudnnTensorFormat_t

// cudnnFilterDescriptor_t.
struct FilterDescriptor {
  int data_type = 0;
  int format = 0;
  std::vector<int> sizes;
};

// Strides of a tensor whose elements lie one after the other.
std::vector<int> PackedStrides(const std::vector<int>& sizes);

}  // namespace hpo::emulator::cudnn
