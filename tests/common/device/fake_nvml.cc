// A stand-in for libnvidia-ml.so.1 with two cards. Compiled several times, once per way in which a
// driver may differ: see CMakeLists.txt.
//   FAKE_OLD            only the first versions of the calls
//   FAKE_WITHOUT_UUID   lacks nvmlDeviceGetUUID
//   FAKE_INIT_CODE      what nvmlInit_v2 returns
//   FAKE_LOST_CARD      index of a card that does not answer
#include <cstdio>
#include <cstring>

#ifndef FAKE_INIT_CODE
#define FAKE_INIT_CODE 0
#endif
#ifndef FAKE_LOST_CARD
#define FAKE_LOST_CARD -1
#endif

namespace {

constexpr unsigned long long kGiB = 1ULL << 30;
constexpr int kInvalidArgument = 2;
constexpr int kNoPermission = 4;
constexpr int kInsufficientSize = 7;
constexpr int kGpuIsLost = 15;
constexpr unsigned int kNumCards = 2;
constexpr unsigned int kNumProcesses = 40;  // more than a caller's first guess
bool g_initialized = false;

// A handle is the card's index plus one, so that no handle is null.
int CardOf(void* device) { return static_cast<int>(reinterpret_cast<long>(device)) - 1; }

unsigned long long UsedBy(unsigned int row) { return row == 0 ? ~0ULL : row * (1ULL << 20); }

}  // namespace

extern "C" {

struct MemoryV1 {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct ProcessV1 {
  unsigned int pid;
  unsigned long long used;
};
struct ProcessV2 {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};

int FakeInit() {
  g_initialized = FAKE_INIT_CODE == 0;
  return FAKE_INIT_CODE;
}

int FakeCount(unsigned int* count) {
  if (!g_initialized) return 1;
  *count = kNumCards;
  return 0;
}

int FakeHandle(unsigned int index, void** device) {
  if (index >= kNumCards) return kInvalidArgument;
  *device = reinterpret_cast<void*>(static_cast<long>(index) + 1);
  return static_cast<int>(index) == FAKE_LOST_CARD ? kGpuIsLost : 0;
}

int nvmlShutdown() {
  g_initialized = false;
  return 0;
}

const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : code == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  std::snprintf(text, length, "580.65.06");
  return 0;
}

int nvmlDeviceGetName(void* device, char* text, unsigned int length) {
  std::snprintf(text, length, "Fake Card %c", 'A' + CardOf(device));
  return 0;
}

#ifndef FAKE_WITHOUT_UUID
int nvmlDeviceGetUUID(void* device, char* text, unsigned int length) {
  std::snprintf(text, length, "GPU-000%d", CardOf(device));
  return 0;
}
#endif

int nvmlDeviceGetMemoryInfo(void*, MemoryV1* memory) {
  *memory = {.total = 24 * kGiB, .free = 20 * kGiB, .used = 4 * kGiB};
  return 0;
}

#ifdef FAKE_OLD

int nvmlInit() { return FakeInit(); }
int nvmlDeviceGetCount(unsigned int* count) { return FakeCount(count); }
int nvmlDeviceGetHandleByIndex(unsigned int index, void** device) {
  return FakeHandle(index, device);
}

int nvmlDeviceGetComputeRunningProcesses(void*, unsigned int* count, ProcessV1* records) {
  if (*count < 1) return kInsufficientSize;
  records[0] = {.pid = 77, .used = kGiB};
  *count = 1;
  return 0;
}

#else

int nvmlInit_v2() { return FakeInit(); }
int nvmlDeviceGetCount_v2(unsigned int* count) { return FakeCount(count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  return FakeHandle(index, device);
}

int nvmlDeviceGetMemoryInfo_v2(void*, MemoryV2* memory) {
  if (memory->version != (sizeof(MemoryV2) | (2U << 24))) return kInvalidArgument;
  memory->total = 24 * kGiB;
  memory->reserved = kGiB;
  memory->free = 20 * kGiB;
  memory->used = 3 * kGiB;
  return 0;
}

// Process 1000 is another user's.
int nvmlSystemGetProcessName(unsigned int pid, char* text, unsigned int length) {
  if (pid == 1000) return kNoPermission;
  std::snprintf(text, length, "/opt/bin/python%u train.py --part 1/2", pid);
  return 0;
}

// Card 0 has many processes, card 1 has none.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, ProcessV2* records) {
  const unsigned int rows = CardOf(device) == 0 ? kNumProcesses : 0;
  const bool enough = *count >= rows;
  *count = rows;
  if (!enough) return kInsufficientSize;
  for (unsigned int row = 0; row < rows; ++row) {
    records[row] = {
        .pid = 1000 + row, .used = UsedBy(row), .gpu_instance = 0, .compute_instance = 0};
  }
  return 0;
}

#endif

}  // extern "C"
