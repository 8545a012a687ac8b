#include "worker/text/tokenizers/parts/vocab_trie.h"

#include <algorithm>

namespace hpo::text {
namespace {

constexpr size_t kByteValues = 256;

// Above this share of taken places a stretch of the array is not searched again.
constexpr double kCrowded = 0.95;

}  // namespace

VocabTrie::VocabTrie(std::span<const std::string> tokens) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].empty()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tokens[a] < tokens[b]; });
  struct Pending {
    Node node;
    size_t depth;  // bytes of prefix that lead to the node
    size_t begin;  // tokens with that prefix: order[begin, end)
    size_t end;
  };
  units_.resize(kByteValues + 1);
  units_[kRoot].parent = kNoParent;
  std::vector<Pending> stack = {{kRoot, 0, 0, order.size()}};
  std::vector<Edge> edges;
  while (!stack.empty()) {
    Pending at = stack.back();
    stack.pop_back();
    if (at.begin < at.end && tokens[order[at.begin]].size() == at.depth) {
      units_[static_cast<size_t>(at.node)].id = static_cast<int32_t>(order[at.begin++]);
    }
    edges.clear();
    for (size_t i = at.begin; i < at.end; ++i) {
      const auto byte = static_cast<unsigned char>(tokens[order[i]][at.depth]);
      if (edges.empty() || edges.back().byte != byte) edges.push_back({byte, i, i});
      edges.back().end = i + 1;
    }
    if (edges.empty()) continue;
    const int32_t base = FindBase(edges);
    units_[static_cast<size_t>(at.node)].base = base;
    for (const Edge& edge : edges) {
      const Node child = base + edge.byte;
      units_[static_cast<size_t>(child)].parent = at.node;
      stack.push_back({child, at.depth + 1, edge.begin, edge.end});
    }
  }
}

// The first base at which every edge finds a free place. The array always ends 256 places after the
// largest base, so that Child needs no bounds check.
int32_t VocabTrie::FindBase(std::span<const Edge> edges) {
  const size_t first_byte = edges.front().byte;
  size_t taken = 0;
  for (size_t place = std::max(first_free_, first_byte + 1);; ++place) {
    const size_t base = place - first_byte;
    if (base + kByteValues > units_.size()) units_.resize(base + kByteValues + units_.size() / 2);
    if (units_[place].parent != kFree) {
      ++taken;
      continue;
    }
    const bool fits = std::all_of(edges.begin(), edges.end(), [&](const Edge& edge) {
      return units_[base + edge.byte].parent == kFree;
    });
    if (!fits) continue;
    const size_t searched = place - first_free_ + 1;
    if (static_cast<double>(taken) >= kCrowded * static_cast<double>(searched)) {
      first_free_ = place;
    }
    return static_cast<int32_t>(base);
  }
}

VocabTrie::Node VocabTrie::Descend(absl::string_view prefix) const {
  Node node = kRoot;
  for (const char c : prefix) {
    node = Child(node, static_cast<unsigned char>(c));
    if (node == kNowhere) return kNowhere;
  }
  return node;
}

}  // namespace hpo::text
