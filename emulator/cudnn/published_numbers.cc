#include "emulator/cudnn/published_numbers.h"

#include <iterator>
#include <string>

#include "emulator/machine.h"

namespace hpo::emulator::cudnn {
namespace {

// What torch 2.4 to 2.13 makes of the graph API: convolutions with their fused additions and
// activations, and attention.
constexpr DescriptorKind kKinds[] = {
    {0, "CUDNN_BACKEND_POINTWISE_DESCRIPTOR", 0, 9},
    {1, "CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR", 100, 106},
    {kEngine, "CUDNN_BACKEND_ENGINE_DESCRIPTOR", 1300, 1307},
    {kEngineConfig, "CUDNN_BACKEND_ENGINECFG_DESCRIPTOR", 300, 304},
    {4, "CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR", 200, 204},
    {kExecutionPlan, "CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR", 400, 407},
    {7, "CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR", 600, 601},
    {kConvolutionForward, "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR", 700, 705},
    {kConvolutionBackwardFilter, "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR",
     712, 717},
    {kConvolutionBackwardData, "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR", 706,
     711},
    {13, "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR", 750, 758},
    {15, "CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR", 800, 804},
    {kVariantPack, "CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR", 1000, 1003},
    {kTensor, "CUDNN_BACKEND_TENSOR_DESCRIPTOR", 900, 913},
    {18, "CUDNN_BACKEND_MATMUL_DESCRIPTOR", 1500, 1503},
    {19, "CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR", 1520, 1527},
    {21, "CUDNN_BACKEND_REDUCTION_DESCRIPTOR", 1600, 1602},
    {22, "CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR", 1610, 1612},
    {31, "CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR", 2200, 2202},
    {32, "CUDNN_BACKEND_RNG_DESCRIPTOR", 2300, 2305},
    {33, "CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR", 2310, 2313},
    {41, "CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR", 2800, 2819},
    {43, "CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR", 2851, 2867},
};

// By the number of the type: a handle, a data type, a boolean, an int64, a float, a double, ...
constexpr size_t kAttributeTypeBytes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4,  4, 4, 4,
                                          8, 4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4};

}  // namespace

size_t ElementBytes(const char* call, int data_type) {
  switch (data_type) {
    case kDataDouble:
    case 10:  // int64
      return 8;
    case kDataFloat:
    case 4:  // int32
      return 4;
    case kDataHalf:
    case kDataBfloat16:
      return 2;
    case 3:   // int8
    case 6:   // uint8
    case 11:  // boolean
      return 1;
    default:
      hpoEmulatedMissing(
          (std::string(call) + " of data type " + std::to_string(data_type)).c_str());
  }
}

const DescriptorKind* FindDescriptorKind(int number) {
  for (const DescriptorKind& kind : kKinds) {
    if (kind.number == number) return &kind;
  }
  return nullptr;
}

size_t AttributeTypeBytes(int type) {
  if (type < 0 || static_cast<size_t>(type) >= std::size(kAttributeTypeBytes)) return 0;
  return kAttributeTypeBytes[type];
}

}  // namespace hpo::emulator::cudnn
