// A set of strings with ids, asked for the longest one that a text begins with: one array access
// per byte of text. A double-array trie over bytes. Source: Aoe 1989, "An efficient digital search
// algorithm by using a double-array structure".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::text {

// Immutable after construction; safe to share between threads.
class VocabTrie {
 public:
  // Where a search starts: the node that some prefix leads to.
  using Node = int32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNowhere = -1;

  struct Match {
    int32_t id = -1;    // -1: none
    size_t length = 0;  // bytes
    bool operator==(const Match&) const = default;
  };

  // Token i has id i; an empty string is no token. Tokens are distinct. O(bytes of all tokens) and
  // a little more.
  explicit VocabTrie(std::span<const std::string> tokens);

  // The node after `prefix`, from the root; kNowhere when no token begins with it.
  Node Descend(absl::string_view prefix) const;

  // Calls visit(match) for every s, shortest first, such that `text` begins with s and (the prefix
  // of `start`) + s is a token.
  template <typename Visit>
  void ForEachMatch(Node start, absl::string_view text, Visit visit) const {
    if (start == kNowhere) return;
    Node node = start;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, static_cast<unsigned char>(text[i]));
      if (node == kNowhere) break;
      if (const int32_t id = units_[static_cast<size_t>(node)].id; id >= 0) visit(Match{id, i + 1});
    }
  }

  // The longest of these; id -1 when there is none.
  Match LongestMatch(Node start, absl::string_view text) const {
    Match best;
    ForEachMatch(start, text, [&](const Match& match) { best = match; });
    return best;
  }

 private:
  // The child of node n by byte b is base(n) + b, if its parent is n.
  struct Unit {
    int32_t base = 0;
    Node parent = kFree;
    int32_t id = -1;
  };
  struct Edge {
    unsigned char byte;
    size_t begin;  // range of sorted tokens below this edge
    size_t end;
  };
  static constexpr Node kFree = -1;
  static constexpr Node kNoParent = -2;

  Node Child(Node node, unsigned char byte) const {
    const Node child = units_[static_cast<size_t>(node)].base + byte;
    return units_[static_cast<size_t>(child)].parent == node ? child : kNowhere;
  }
  int32_t FindBase(std::span<const Edge> edges);

  std::vector<Unit> units_;
  size_t first_free_ = 1;
};

}  // namespace hpo::text
