// LD_PRELOAD into a server: shifts its wall clock and fails its file calls, as the environment
// says.
//
//   HPO_CHAOS_CLOCK   a file with seconds that the wall clock is off; read at each reading
//   HPO_CHAOS_FAULT   a file "FIRST COUNT ERRNO": of the calls after it was written, FIRST (from 1)
//                     and the COUNT - 1 after it fail with that errno; absent: none fails
//   HPO_CHAOS_MATCH   part of the paths whose calls count
//
// Counted are pread, pwrite, fsync, fdatasync, ftruncate and open together, in the order of the
// calls.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Plan {
  long first = 0;
  long count = 0;
  int error = 0;
};

std::mutex plan_mutex;
Plan plan;
timespec plan_written{};
long calls = 0;

// The control file is read by the C library's own calls, which are not those that are replaced
// here.
void ReadPlan(const char* path) {
  struct stat file;
  if (stat(path, &file) != 0) {
    plan = Plan{};
    plan_written = timespec{};
    return;
  }
  if (file.st_mtim.tv_sec == plan_written.tv_sec && file.st_mtim.tv_nsec == plan_written.tv_nsec) {
    return;
  }
  FILE* control = fopen(path, "re");
  if (control == nullptr) return;
  Plan read;
  if (fscanf(control, "%ld %ld %d", &read.first, &read.count, &read.error) == 3) {
    plan = read;
    plan_written = file.st_mtim;
    calls = 0;
  }
  fclose(control);
}

// Whether this call is one that fails; errno is set then.
bool Fails(const char* path) {
  static const char* const control = getenv("HPO_CHAOS_FAULT");
  static const char* const match = getenv("HPO_CHAOS_MATCH");
  if (control == nullptr || match == nullptr) return false;
  if (strstr(path, match) == nullptr) return false;
  const std::lock_guard<std::mutex> lock(plan_mutex);
  ReadPlan(control);
  if (plan.count == 0) return false;
  ++calls;
  if (calls < plan.first || calls >= plan.first + plan.count) return false;
  errno = plan.error;
  return true;
}

bool FailsOn(int fd) {
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  return Fails(path);
}

long ClockOffset() {
  static const char* const path = getenv("HPO_CHAOS_CLOCK");
  long offset = 0;
  FILE* control = path == nullptr ? nullptr : fopen(path, "re");
  if (control == nullptr) return 0;
  if (fscanf(control, "%ld", &offset) != 1) offset = 0;
  fclose(control);
  return offset;
}

mode_t ModeOf(int flags, va_list words) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(words, mode_t) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* time) {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(id, time);
  if (id == CLOCK_REALTIME) time->tv_sec += ClockOffset();
  return result;
}

// Timed waits of Abseil's are by the kernel's wall clock, which is not off.
long syscall(long number, ...) noexcept {
  static auto* const next = Next<long(long, ...)>("syscall");
  va_list words;
  va_start(words, number);
  long word[6];
  for (long& each : word) each = va_arg(words, long);
  va_end(words);
  timespec deadline;
  const bool waits = number == SYS_futex && word[3] != 0 && (word[1] & FUTEX_CLOCK_REALTIME) != 0;
  if (waits) {
    deadline = *reinterpret_cast<const timespec*>(word[3]);
    // A deadline that is over may be the epoch; before it there is none.
    deadline.tv_sec = std::max<time_t>(0, deadline.tv_sec - ClockOffset());
    word[3] = reinterpret_cast<long>(&deadline);
  }
  return next(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

int gettimeofday(timeval* time, void* zone) noexcept {
  static auto* const next = Next<int(timeval*, void*)>("gettimeofday");
  const int result = next(time, zone);
  time->tv_sec += ClockOffset();
  return result;
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  static auto* const next = Next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return FailsOn(fd) ? -1 : next(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return FailsOn(fd) ? -1 : next(fd, data, size, offset);
}

int fsync(int fd) {
  static auto* const next = Next<int(int)>("fsync");
  return FailsOn(fd) ? -1 : next(fd);
}

int fdatasync(int fd) {
  static auto* const next = Next<int(int)>("fdatasync");
  return FailsOn(fd) ? -1 : next(fd);
}

int ftruncate64(int fd, off64_t size) noexcept {
  static auto* const next = Next<int(int, off64_t)>("ftruncate64");
  return FailsOn(fd) ? -1 : next(fd, size);
}

int open64(const char* path, int flags, ...) {
  static auto* const next = Next<int(const char*, int, ...)>("open64");
  va_list words;
  va_start(words, flags);
  const mode_t mode = ModeOf(flags, words);
  va_end(words);
  return Fails(path) ? -1 : next(path, flags, mode);
}

int open(const char* path, int flags, ...) {
  static auto* const next = Next<int(const char*, int, ...)>("open");
  va_list words;
  va_start(words, flags);
  const mode_t mode = ModeOf(flags, words);
  va_end(words);
  return Fails(path) ? -1 : next(path, flags, mode);
}

}  // extern "C"
