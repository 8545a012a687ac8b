#include "emulator/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hpo::emulator {

void EndWith(const std::string& complaint) {
  std::fprintf(stderr, "emulated card: %s\n", complaint.c_str());
  // No destructors: this may be said from any thread, in the middle of any library.
  _exit(2);
}

CallLog::CallLog(const std::string& path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "ae");
  if (file_ == nullptr) EndWith("log file '" + path + "': " + std::strerror(errno));
  std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
}

CallLog::~CallLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void CallLog::Write(const std::string& line) {
  if (file_ != nullptr) std::fprintf(file_, "%d %s\n", static_cast<int>(getpid()), line.c_str());
}

}  // namespace hpo::emulator
