#include "emulator/streams/graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hpo::emulator {
namespace {

const char* KindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kKernel:
      return "kernel";
    case NodeKind::kCopy:
      return "copy";
    case NodeKind::kSet:
      return "set";
    case NodeKind::kHostFunction:
      return "host function";
    case NodeKind::kGraph:
      return "graph";
    case NodeKind::kEvent:
      return "event";
  }
  return "";
}

}  // namespace

GraphNode* Graph::Add(NodeKind kind, std::function<void()> work,
                      std::vector<GraphNode*> dependencies) {
  for (GraphNode* const node : dependencies) node->has_dependents = true;
  nodes_.push_back(std::make_unique<GraphNode>(
      GraphNode{.kind = kind, .work = std::move(work), .dependencies = std::move(dependencies)}));
  return nodes_.back().get();
}

std::string Graph::Dot() const {
  const auto number = [&](const GraphNode* node) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const auto& known) { return known.get() == node; });
    return "node" + std::to_string(std::distance(nodes_.begin(), found));
  };
  std::string text = "digraph emulated {\n";
  for (const auto& node : nodes_) {
    text += "  " + number(node.get()) + " [label=\"" + KindName(node->kind) + "\"];\n";
    for (const GraphNode* const before : node->dependencies) {
      text += "  " + number(before) + " -> " + number(node.get()) + ";\n";
    }
  }
  return text + "}\n";
}

ExecutableGraph::ExecutableGraph(const Graph& graph) {
  for (const auto& node : graph.nodes()) works_.push_back(node->work);
}

void ExecutableGraph::Run() const {
  for (const auto& work : works_) work();
}

}  // namespace hpo::emulator
