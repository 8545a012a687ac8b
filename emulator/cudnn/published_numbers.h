// Numbers of cuDNN's published interface, as its documentation and public bindings name them.
// NVIDIA's headers are not in torch's wheel, so what the emulated cuDNN reads has a name here.
#pragma once

#include <cstddef>

namespace hpo::emulator::cudnn {

constexpr int kSuccess = 0;

// Types of elements in a tensor (cudnnDataType_t).
constexpr int kDataFloat = 0;
constexpr int kDataDouble = 1;
constexpr int kDataHalf = 2;
constexpr int kDataBfloat16 = 9;

// Bytes of one element. Ends the program if the type is not known.
size_t ElementBytes(const char* call, int data_type);

// A kind of descriptor of the graph API (cudnnBackendDescriptorType_t), and the attributes that
// belong to it: a closed range of numbers (cudnnBackendAttributeName_t).
struct DescriptorKind {
  int number;
  const char* name;
  int first_attribute;
  int last_attribute;
};

constexpr int kConvolutionForward = 10;
constexpr int kConvolutionBackwardFilter = 11;
constexpr int kConvolutionBackwardData = 12;
constexpr int kEngine = 2;
constexpr int kEngineConfig = 3;
constexpr int kExecutionPlan = 5;
constexpr int kVariantPack = 16;
constexpr int kTensor = 17;

// Null where the emulated cuDNN knows no such descriptor.
const DescriptorKind* FindDescriptorKind(int number);

// Attributes that are answered or read; all others are only kept.
constexpr int kEngineHeuristicGraph = 201;
constexpr int kEngineHeuristicResults = 202;
constexpr int kConfigEngine = 300;
constexpr int kConfigKnobChoices = 302;
constexpr int kConfigWorkspaceBytes = 303;
constexpr int kConfigSharedMemoryBytes = 304;
constexpr int kPlanConfig = 401;
constexpr int kPlanWorkspaceBytes = 402;
constexpr int kForwardW = 703;
constexpr int kForwardX = 704;
constexpr int kBackwardDataW = 709;
constexpr int kBackwardDataDy = 711;
constexpr int kBackwardFilterDw = 715;
constexpr int kBackwardFilterX = 716;
constexpr int kBackwardFilterDy = 717;
constexpr int kGraphOperations = 801;
constexpr int kGraphEngineCount = 802;
constexpr int kGraphHasDynamicShapes = 803;
constexpr int kTensorDataType = 901;
constexpr int kTensorSizes = 902;
constexpr int kTensorStrides = 903;
constexpr int kEngineGraph = 1300;
constexpr int kEngineIndex = 1301;
constexpr int kEngineKnobInfo = 1302;
constexpr int kEngineNumericalNotes = 1303;
constexpr int kEngineBehaviorNotes = 1305;

// Types of attributes (cudnnBackendAttributeType_t).
constexpr int kTypeInt64 = 3;
constexpr int kTypeDescriptor = 15;
constexpr int kTypeInt32 = 23;

// Bytes of one element of an attribute, 0 where the type is not known.
size_t AttributeTypeBytes(int type);

}  // namespace hpo::emulator::cudnn
