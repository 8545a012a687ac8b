// Work with its order: what the capture of a stream collects, and a launch of the graph repeats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hpo::emulator {

enum class NodeKind { kKernel, kCopy, kSet, kHostFunction, kGraph, kEvent };

struct GraphNode {
  NodeKind kind;
  std::function<void()> work;
  std::vector<GraphNode*> dependencies;
  bool has_dependents = false;
};

// Owns its nodes: their addresses are the handles that programs see. Not safe for threads.
class Graph {
 public:
  GraphNode* Add(NodeKind kind, std::function<void()> work, std::vector<GraphNode*> dependencies);

  // In the order in which they were added: a node comes after those that it depends on.
  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }

  // The graph in the DOT language.
  std::string Dot() const;

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

// A graph that can be launched. It outlives the graph that it was made of.
class ExecutableGraph {
 public:
  explicit ExecutableGraph(const Graph& graph);
  void Run() const;

 private:
  std::vector<std::function<void()>> works_;
};

}  // namespace hpo::emulator
