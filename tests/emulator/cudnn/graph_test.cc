// cuDNN's graph API as a program sees it, by its calls.
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/cudnn/backend_descriptor.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/emulator/cudnn/emulated_gpu.h"

extern "C" {
int cudnnBackendCreateDescriptor(int kind, void** descriptor);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count,
                             const void* elements);
int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t room,
                             int64_t* count, void* elements);
int cudnnBackendExecute(void* handle, void* plan, void* pack);
}

namespace hpo::emulator::cudnn {
namespace {

constexpr int kGraph = 15;
constexpr int kHeuristics = 4;
constexpr int kForwardY = 705;
constexpr int kTypeDataType = 1;

void* Create(int kind) {
  void* descriptor = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &descriptor), kSuccess);
  return descriptor;
}

void Set(void* descriptor, int attribute, void* child) {
  EXPECT_EQ(cudnnBackendSetAttribute(descriptor, attribute, kTypeDescriptor, 1, &child), kSuccess);
}

int64_t GetNumber(void* descriptor, int attribute) {
  int64_t number = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(descriptor, attribute, kTypeInt64, 1, nullptr, &number),
            kSuccess);
  return number;
}

void* Tensor(int data_type, const std::vector<int64_t>& sizes, bool channels_last) {
  std::vector<int64_t> strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  if (channels_last) strides = {strides[0], 1, sizes[3] * sizes[1], sizes[1]};
  void* const tensor = Create(kTensor);
  cudnnBackendSetAttribute(tensor, kTensorDataType, kTypeDataType, 1, &data_type);
  cudnnBackendSetAttribute(tensor, kTensorSizes, kTypeInt64, 4, sizes.data());
  cudnnBackendSetAttribute(tensor, kTensorStrides, kTypeInt64, 4, strides.data());
  return tensor;
}

// A graph of one convolution of 3 x 3; its parts are destroyed.
void* ConvolutionGraph(int data_type, bool channels_last) {
  const std::pair<int, void*> parts[] = {
      {kForwardX, Tensor(data_type, {2, 16, 8, 8}, channels_last)},
      {kForwardW, Tensor(data_type, {32, 16, 3, 3}, channels_last)},
      {kForwardY, Tensor(data_type, {2, 32, 6, 6}, channels_last)}};
  void* const operation = Create(kConvolutionForward);
  for (const auto& [attribute, tensor] : parts) Set(operation, attribute, tensor);
  void* const graph = Create(kGraph);
  Set(graph, kGraphOperations, operation);
  for (const auto& [attribute, tensor] : parts) cudnnBackendDestroyDescriptor(tensor);
  cudnnBackendDestroyDescriptor(operation);
  return graph;
}

// Workspaces of the plans that heuristics find for the graph, which is destroyed.
std::vector<int64_t> PlanWorkspaces(void* graph) {
  void* const heuristics = Create(kHeuristics);
  Set(heuristics, kEngineHeuristicGraph, graph);
  cudnnBackendDestroyDescriptor(graph);
  int64_t count = 0;
  cudnnBackendGetAttribute(heuristics, kEngineHeuristicResults, kTypeDescriptor, 0, &count,
                           nullptr);
  std::vector<void*> configs;
  for (int64_t i = 0; i < count; ++i) configs.push_back(Create(kEngineConfig));
  cudnnBackendGetAttribute(heuristics, kEngineHeuristicResults, kTypeDescriptor, count, &count,
                           configs.data());
  cudnnBackendDestroyDescriptor(heuristics);
  std::vector<int64_t> workspaces;
  for (void* const config : configs) {
    void* const plan = Create(kExecutionPlan);
    Set(plan, kPlanConfig, config);
    cudnnBackendDestroyDescriptor(config);
    workspaces.push_back(GetNumber(plan, kPlanWorkspaceBytes));
    cudnnBackendDestroyDescriptor(plan);
  }
  return workspaces;
}

TEST(Graph, PlansKeepWhatTheyNeedAndNothingIsLeft) {
  const size_t before = LiveObjects<BackendDescriptor>().size();
  EXPECT_THAT(PlanWorkspaces(ConvolutionGraph(kDataFloat, false)), testing::ElementsAre(0));
  EXPECT_THAT(PlanWorkspaces(ConvolutionGraph(kDataHalf, true)), testing::ElementsAre(0));
  // Input and filter are copied.
  EXPECT_THAT(PlanWorkspaces(ConvolutionGraph(kDataHalf, false)),
              testing::ElementsAre(2 * (2 * 16 * 8 * 8 + 32 * 16 * 3 * 3), 0));
  EXPECT_EQ(LiveObjects<BackendDescriptor>().size(), before);
}

TEST(Graph, ADescriptorAnswersWhatWasSetOnIt) {
  void* const tensor = Tensor(kDataHalf, {2, 3, 4, 5}, false);
  int64_t count = 0;
  int64_t sizes[4] = {};
  cudnnBackendGetAttribute(tensor, kTensorSizes, kTypeInt64, 4, &count, sizes);
  EXPECT_EQ(count, 4);
  EXPECT_THAT(sizes, testing::ElementsAre(2, 3, 4, 5));
  int64_t first[1] = {};
  cudnnBackendGetAttribute(tensor, kTensorSizes, kTypeInt64, 1, &count, first);
  EXPECT_EQ(count, 4);  // as many as there are
  EXPECT_EQ(first[0], 2);
  cudnnBackendDestroyDescriptor(tensor);
}

TEST(GraphDeathTest, NamesWhatIsNotEmulated) {
  void* ignored = nullptr;
  EXPECT_DEATH(cudnnBackendCreateDescriptor(77, &ignored),
               "cudnnBackendCreateDescriptor of descriptor type 77 is not emulated");
  void* const tensor = Tensor(kDataHalf, {2, 3, 4, 5}, false);
  const int64_t number = 1;
  EXPECT_DEATH(cudnnBackendSetAttribute(tensor, 999, kTypeInt64, 1, &number),
               "cudnnBackendSetAttribute of attribute 999 of CUDNN_BACKEND_TENSOR_DESCRIPTOR is "
               "not emulated");
  EXPECT_DEATH(cudnnBackendSetAttribute(tensor, kTensorSizes, 99, 1, &number),
               "attribute 902 of CUDNN_BACKEND_TENSOR_DESCRIPTOR with attribute type 99 is not");
  void* const operation = Create(kConvolutionForward);
  Set(operation, kForwardX, tensor);
  void* const graph = Create(kGraph);
  Set(graph, kGraphOperations, operation);
  EXPECT_DEATH(GetNumber(graph, kGraphEngineCount),
               "use of attribute 703 of .*FORWARD_DESCRIPTOR, which was not set, is not emulated");
  EXPECT_DEATH(GetNumber(tensor, 904), "attribute 904 of .*, which was not set, is not emulated");
  EXPECT_DEATH(cudnnBackendExecute(nullptr, tensor, tensor),
               "cudnnBackendExecute of a CUDNN_BACKEND_TENSOR_DESCRIPTOR is not emulated");
  cudnnBackendDestroyDescriptor(tensor);
  EXPECT_DEATH(cudnnBackendDestroyDescriptor(tensor),
               "cudnnBackendDestroyDescriptor of an object that does not exist is not emulated");
}

}  // namespace
}  // namespace hpo::emulator::cudnn
