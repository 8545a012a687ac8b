#include "tests/server/storage/faulty_vfs.h"

#include <sqlite3.h>

#include <cerrno>
#include <memory>
#include <new>

#include "absl/strings/match.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

// What SQLite allocates for an open file: ours, then that of the real file system.
struct FaultyFile {
  sqlite3_file base;
  FaultyVfs* faults;
  std::string* path;
  int error;  // errno of the last operation that failed

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

FaultyFile* Of(sqlite3_file* file) { return reinterpret_cast<FaultyFile*>(file); }
const sqlite3_io_methods* Real(sqlite3_file* file) { return Of(file)->real()->pMethods; }

// The real file's method with the same arguments, unless the operation is to fail.
template <typename Method, typename... Arguments>
int Try(FileOperation operation, sqlite3_file* file, Method method, Arguments... arguments) {
  FaultyFile* const ours = Of(file);
  const int code = ours->faults->Outcome(operation, *ours->path);
  if (code == SQLITE_OK) return method(ours->real(), arguments...);
  ours->error = EIO;
  return code;
}

int Close(sqlite3_file* file) {
  const int code = Real(file)->xClose(Of(file)->real());
  delete Of(file)->path;
  return code;
}
// A read that meets the end of the file forgets the error, as in SQLite's os_unix.c.
int Read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  const int code = Try(FileOperation::kRead, file, Real(file)->xRead, into, size, offset);
  if (code == SQLITE_IOERR_SHORT_READ) Of(file)->error = 0;
  return code;
}
int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  return Try(FileOperation::kWrite, file, Real(file)->xWrite, from, size, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return Real(file)->xTruncate(Of(file)->real(), size);
}
int Sync(sqlite3_file* file, int flags) {
  return Try(FileOperation::kSync, file, Real(file)->xSync, flags);
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->xFileSize(Of(file)->real(), size);
}
int Lock(sqlite3_file* file, int lock) { return Real(file)->xLock(Of(file)->real(), lock); }
int Unlock(sqlite3_file* file, int lock) { return Real(file)->xUnlock(Of(file)->real(), lock); }
int CheckReservedLock(sqlite3_file* file, int* held) {
  return Real(file)->xCheckReservedLock(Of(file)->real(), held);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  if (operation == SQLITE_FCNTL_LAST_ERRNO) {
    *static_cast<int*>(argument) = Of(file)->error;
    return SQLITE_OK;
  }
  return Real(file)->xFileControl(Of(file)->real(), operation, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->xSectorSize(Of(file)->real()); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->xDeviceCharacteristics(Of(file)->real());
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** map) {
  return Try(FileOperation::kMap, file, Real(file)->xShmMap, page, size, extend, map);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Real(file)->xShmLock(Of(file)->real(), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->xShmBarrier(Of(file)->real()); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->xShmUnmap(Of(file)->real(), remove);
}

// Version 2: without memory-mapped reads, which no method would see.
constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         DeviceCharacteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         nullptr,
                                         nullptr};

FaultyVfs* FaultsOf(sqlite3_vfs* vfs) { return static_cast<FaultyVfs*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  FaultyVfs* const faults = FaultsOf(vfs);
  FaultyFile* const ours =
      new (file) FaultyFile{.base = {}, .faults = faults, .path = nullptr, .error = 0};
  const std::string path = name == nullptr ? "" : name;
  ours->real()->pMethods = nullptr;
  if (const int code = faults->Outcome(FileOperation::kOpen, path); code != SQLITE_OK) {
    errno = EMFILE;  // SQLite asks for it
    return code;
  }
  const int code = faults->real()->xOpen(faults->real(), name, ours->real(), flags, flags_out);
  if (ours->real()->pMethods == nullptr) return code;
  if (code != SQLITE_OK) {
    ours->real()->pMethods->xClose(ours->real());
    return code;
  }
  ours->path = new std::string(path);
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

sqlite3_vfs MakeVfs(FaultyVfs* faults) {
  sqlite3_vfs vfs = *faults->real();
  vfs.pNext = nullptr;
  vfs.zName = "hpo-faulty";
  vfs.szOsFile = static_cast<int>(sizeof(FaultyFile)) + faults->real()->szOsFile;
  vfs.pAppData = faults;
  vfs.xOpen = Open;
  // The rest of the real file system's methods ask nothing of pAppData but these.
  vfs.xDelete = [](sqlite3_vfs* self, const char* name, int sync) {
    return FaultsOf(self)->real()->xDelete(FaultsOf(self)->real(), name, sync);
  };
  vfs.xAccess = [](sqlite3_vfs* self, const char* name, int flags, int* result) {
    return FaultsOf(self)->real()->xAccess(FaultsOf(self)->real(), name, flags, result);
  };
  vfs.xFullPathname = [](sqlite3_vfs* self, const char* name, int size, char* into) {
    return FaultsOf(self)->real()->xFullPathname(FaultsOf(self)->real(), name, size, into);
  };
  return vfs;
}

// SQLite keeps the pointer between registering and unregistering.
sqlite3_vfs& Registered() {
  static sqlite3_vfs vfs;
  return vfs;
}

}  // namespace

FaultyVfs::FaultyVfs() : real_(sqlite3_vfs_find(nullptr)) {
  Registered() = MakeVfs(this);
  HPO_CHECK(sqlite3_vfs_register(&Registered(), /*makeDflt=*/1) == SQLITE_OK);
}

FaultyVfs::~FaultyVfs() {
  sqlite3_vfs_unregister(&Registered());
  sqlite3_vfs_register(real_, /*makeDflt=*/1);
}

void FaultyVfs::Fail(const FileFault& fault) {
  absl::MutexLock lock(&mutex_);
  fault_ = fault;
  armed_ = true;
  num_matching_ = 0;
  num_failed_ = 0;
  done_.clear();
}

void FaultyVfs::Heal() {
  absl::MutexLock lock(&mutex_);
  armed_ = false;
}

int64_t FaultyVfs::NumDone(FileOperation operation) const {
  absl::MutexLock lock(&mutex_);
  const auto found = done_.find(operation);
  return found == done_.end() ? 0 : found->second;
}

int64_t FaultyVfs::NumFailed() const {
  absl::MutexLock lock(&mutex_);
  return num_failed_;
}

void FaultyVfs::Forget() {
  absl::MutexLock lock(&mutex_);
  num_failed_ = 0;
  done_.clear();
}

int FaultyVfs::Outcome(FileOperation operation, absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  ++done_[operation];
  if (!armed_ || operation != fault_.operation || !absl::EndsWith(path, fault_.file)) {
    return SQLITE_OK;
  }
  ++num_matching_;
  const bool fails = num_matching_ >= fault_.first && num_matching_ - fault_.first < fault_.count;
  if (!fails) return SQLITE_OK;
  ++num_failed_;
  return fault_.code;
}

}  // namespace hpo::server
