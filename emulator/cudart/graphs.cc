// libcudart: the capture of streams and graphs (streams.h has the rules).
#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "emulator/cudart/cudart.h"

namespace {

using hpo::emulator::CaptureInfo;
using hpo::emulator::CaptureMode;
using hpo::emulator::Done;
using hpo::emulator::ExecutableGraph;
using hpo::emulator::Graph;
using hpo::emulator::GraphNode;
using hpo::emulator::NodeKind;
using hpo::emulator::Streams;

Graph& Of(cudaGraph_t graph) { return *reinterpret_cast<Graph*>(graph); }

cudaGraphNode_t Handle(GraphNode* node) { return reinterpret_cast<cudaGraphNode_t>(node); }

// How CUDA hands out a list: its length if there is no room given, otherwise as much as has room;
// what is left of the room is null.
template <typename Nodes>
void HandOut(const Nodes& nodes, cudaGraphNode_t* out, size_t* count) {
  if (out != nullptr) {
    std::fill_n(out, *count, nullptr);
    for (size_t i = 0; i < std::min(*count, nodes.size()); ++i) out[i] = Handle(&*nodes[i]);
  }
  *count = out == nullptr ? nodes.size() : std::min(*count, nodes.size());
}

}  // namespace

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  HPO_CUDA_CALL(cudaThreadExchangeStreamCaptureMode);
  const CaptureMode before = Streams::ExchangeMode(static_cast<CaptureMode>(*mode));
  *mode = static_cast<cudaStreamCaptureMode>(before);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  HPO_CUDA_CALL(cudaStreamBeginCapture);
  return Done(Streams::Get().BeginCapture(stream, static_cast<CaptureMode>(mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  HPO_CUDA_CALL(cudaStreamEndCapture);
  std::unique_ptr<Graph> captured;
  const int code = Streams::Get().EndCapture(stream, captured);
  *graph = reinterpret_cast<cudaGraph_t>(captured.release());
  return Done(code);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  HPO_CUDA_CALL(cudaStreamIsCapturing);
  CaptureInfo info;
  const int code = Streams::Get().GetCaptureInfo(stream, info);
  *status = static_cast<cudaStreamCaptureStatus>(info.status);
  return Done(code);
}

cudaError_t HPO_NEWER_CALL(cudaStreamGetCaptureInfo,
                           _v3)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                unsigned long long* id, cudaGraph_t* graph,
                                const cudaGraphNode_t** dependencies,
                                const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  HPO_CUDA_CALL(cudaStreamGetCaptureInfo);
  CaptureInfo info;
  const int code = Streams::Get().GetCaptureInfo(stream, info);
  // The lists are the caller's until the thread's next call.
  static thread_local std::vector<cudaGraphNode_t> nodes;
  static thread_local std::vector<cudaGraphEdgeData> data;
  nodes.clear();
  for (GraphNode* const node : info.dependencies) nodes.push_back(Handle(node));
  data.assign(nodes.size(), {});
  *status = static_cast<cudaStreamCaptureStatus>(info.status);
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(info.graph);
  if (dependencies != nullptr) *dependencies = nodes.data();
  if (edges != nullptr) *edges = data.data();
  if (num_dependencies != nullptr) *num_dependencies = nodes.size();
  return Done(code);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  HPO_CUDA_CALL(cudaGraphGetNodes);
  HandOut(Of(graph).nodes(), nodes, count);
  return cudaSuccess;
}

cudaError_t HPO_NEWER_CALL(cudaGraphNodeGetDependencies,
                           _v2)(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                cudaGraphEdgeData* edges, size_t* count) {
  HPO_CUDA_CALL(cudaGraphNodeGetDependencies);
  if (edges != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
  HandOut(reinterpret_cast<GraphNode*>(node)->dependencies, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int) {
  HPO_CUDA_CALL(cudaGraphDebugDotPrint);
  std::ofstream file(path);
  file << Of(graph).Dot();
  file.close();
  return file.fail() ? Done(cudaErrorOperatingSystem) : cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  HPO_CUDA_CALL(cudaGraphDestroy);
  delete &Of(graph);
  return cudaSuccess;
}

// A graph's own memory on the device is not known: it is not counted.
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  HPO_CUDA_CALL(cudaGraphInstantiateWithFlags);
  *executable = reinterpret_cast<cudaGraphExec_t>(
      new std::shared_ptr<ExecutableGraph>(std::make_shared<ExecutableGraph>(Of(graph))));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaGraphLaunch);
  const auto graph = *reinterpret_cast<std::shared_ptr<ExecutableGraph>*>(executable);
  return Done(Streams::Get().Enqueue(stream, NodeKind::kGraph, [graph] { graph->Run(); }));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  HPO_CUDA_CALL(cudaGraphExecDestroy);
  delete reinterpret_cast<std::shared_ptr<ExecutableGraph>*>(executable);
  return cudaSuccess;
}

}  // extern "C"
