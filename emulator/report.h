// What the emulated card says on its own, and its log.
#pragma once

#include <cstdio>
#include <string>

namespace hpo::emulator {

// Says in one line what is wrong with the settings, and ends the program with status 2.
[[noreturn]] void EndWith(const std::string& complaint);

// Lines of `PID CALL ...`, added to a file that processes share.
class CallLog {
 public:
  explicit CallLog(const std::string& path);  // empty: Write does nothing
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  bool is_on() const { return file_ != nullptr; }
  void Write(const std::string& line);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace hpo::emulator
