#include "common/command_line/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hpo {

void OpenStandardStreams() {
  // What is opened takes the lowest free descriptor. Standard output is read-only here.
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = open("/dev/null", kModes[descriptor]);
    }
  }
}

int FinishOutput(std::ostream& out, std::ostream& err, int status) {
  out.flush();
  if (out.good()) return status;
  // Another try says why.
  out.clear();
  errno = 0;
  out << std::endl;
  const int error = out.good() ? 0 : errno;
  err << "hpo: cannot write to standard output";
  if (error != 0) err << ": " << strerror(error);
  err << std::endl;
  return status == 0 ? 1 : status;
}

}  // namespace hpo
