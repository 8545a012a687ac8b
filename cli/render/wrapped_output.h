// A stream buffer that breaks lines for a terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace hpo::cli {

// Passes each line on to `to` as WrappedLine (common/command_line/wrapped_line.h) puts it, as soon
// as it is whole. What is flushed in the middle of a line is passed on as it is, so that a line can
// be redrawn. One thread at a time.
class WrappedOutput final : public std::streambuf {
 public:
  // `to` outlives it. columns >= 1.
  WrappedOutput(std::ostream& to, int columns) : to_(to), columns_(columns) {}
  ~WrappedOutput() override { sync(); }

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  void PassOnLine();

  std::ostream& to_;
  const int columns_;
  std::string line_;
  bool is_continued_ = false;  // a part of the line is passed on already
};

}  // namespace hpo::cli
