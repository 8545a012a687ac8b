// Finds the dicts in the lines that a program prints: several in a line, or one over several lines,
// with whatever a logger puts before them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"

namespace hpo {

// Lines that belong together, and the numbers of the dicts in them, in their order.
struct ReadLines {
  std::vector<std::string> lines;
  std::vector<Metrics> dicts;
};

// A line whose dict is not closed is held, and so are the lines that continue it; other lines
// between them are read by themselves. It is given up at a line with another brace that does not
// continue it, and beyond kMostLines or kMostBytes; what was held is then read line by line, so
// that nothing is lost. One owner thread.
class DictLines {
 public:
  static constexpr size_t kMostLines = 1000;
  static constexpr size_t kMostBytes = 64 << 10;

  // What is decided by the next line, in the order in which it was printed.
  std::vector<ReadLines> Take(absl::string_view line);
  // What is still held.
  std::vector<ReadLines> Finish();

 private:
  // Whether `line` goes on with what is held, whatever comes of it.
  bool Continue(absl::string_view line, std::vector<ReadLines>& decided);
  void GiveUp(std::vector<ReadLines>& decided);

  std::vector<std::string> held_;
  size_t num_lines_ = 0;  // since the brace, those between included
  std::string open_;      // what is held, from its brace on
  std::string prefix_;    // what stood before the brace, and may stand before every line
};

}  // namespace hpo
