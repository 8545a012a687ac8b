#include "emulator/cudnn/engines.h"

#include <cstring>
#include <utility>

#include "emulator/cudnn/convolution_workspace.h"
#include "emulator/cudnn/current_gpu.h"

namespace hpo::emulator::cudnn {
namespace {

// Which attributes of a convolution's operation are what its kernel reads, and its filter.
struct ConvolutionOperation {
  int kind;
  int inputs[2];
  int filter;
};
constexpr ConvolutionOperation kConvolutions[] = {
    {kConvolutionForward, {kForwardX, kForwardW}, kForwardW},
    {kConvolutionBackwardData, {kBackwardDataDy, kBackwardDataW}, kBackwardDataW},
    {kConvolutionBackwardFilter, {kBackwardFilterX, kBackwardFilterDy}, kBackwardFilterDw},
};

ConvolutionTensor ReadTensor(const DescriptorContent& tensor) {
  return MakeConvolutionTensor(tensor.Number(kTensorDataType), tensor.Integers(kTensorSizes),
                               tensor.Integers(kTensorStrides));
}

int64_t OperationWorkspaceBytes(const DescriptorContent& operation, int capability) {
  for (const ConvolutionOperation& known : kConvolutions) {
    if (operation.kind().number != known.kind) continue;
    Convolution convolution;
    for (const int input : known.inputs) {
      convolution.inputs.push_back(ReadTensor(*operation.Child(input)));
    }
    convolution.channels_per_group = ReadTensor(*operation.Child(known.filter)).sizes[1];
    return ConvolutionWorkspaceBytes(convolution, capability);
  }
  // Attention and what is fused with a convolution: not known, taken as none. What attention's
  // backward pass is known to want, cuDNN's frontend asks of torch itself.
  return 0;
}

int64_t PreferredWorkspaceBytes(const DescriptorContent& graph) {
  const AttributeValue* const operations = graph.Find(kGraphOperations);
  if (operations == nullptr) return 0;
  int64_t bytes = 0;
  for (const auto& operation : operations->descriptors) {
    bytes += OperationWorkspaceBytes(*operation, CurrentGpu().capability);
  }
  return bytes;
}

}  // namespace

int64_t NumEngines(const DescriptorContent& graph) {
  return PreferredWorkspaceBytes(graph) > 0 ? 2 : 1;
}

std::shared_ptr<const DescriptorContent> MakeEngine(std::shared_ptr<const DescriptorContent> graph,
                                                    int64_t index) {
  auto engine = std::make_shared<DescriptorContent>(*FindDescriptorKind(kEngine));
  AttributeValue number{.type = kTypeInt64, .count = 1, .bytes = {}, .descriptors = {}};
  number.bytes.resize(sizeof index);
  std::memcpy(number.bytes.data(), &index, sizeof index);
  engine->Set(kEngineIndex, std::move(number));
  engine->Set(
      kEngineGraph,
      {.type = kTypeDescriptor, .count = 1, .bytes = {}, .descriptors = {std::move(graph)}});
  return engine;
}

int64_t EngineWorkspaceBytes(const DescriptorContent& engine) {
  if (engine.Integers(kEngineIndex).front() != 0) return 0;
  return PreferredWorkspaceBytes(*engine.Child(kEngineGraph));
}

}  // namespace hpo::emulator::cudnn
