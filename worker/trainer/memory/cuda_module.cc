#include "worker/trainer/memory/cuda_module.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/user_folder.h"

namespace hpo::trainer {
namespace {

std::string ModulePath() {
  return (std::filesystem::path(ProgramFolder()).parent_path() / "lib" / "hpo_cuda.so").string();
}

absl::StatusOr<void*> LoadModule() {
  const std::string path = ModulePath();
  // RTLD_GLOBAL: torch's CUDA libraries register their kernels with the libtorch_cpu that is there.
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load torch's CUDA libraries: ", ::dlerror(),
                     " (expected a CUDA build of torch in HPO_TORCH_ROOT; or use --device cpu)"));
  }
  return module;
}

// A new T of card `index`, from the module's function `name`.
template <typename T>
absl::StatusOr<std::unique_ptr<T>> Open(const char* name, int index) {
  static const absl::StatusOr<void*> module = LoadModule();
  if (!module.ok()) return module.status();
  void* const symbol = ::dlsym(*module, name);
  if (symbol == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(ModulePath(), ": not a module of this program"));
  }
  std::array<char, 1024> error{};
  T* const made = reinterpret_cast<OpenCudaFunction<T>>(symbol)(index, error.data(), error.size());
  if (made == nullptr) return absl::FailedPreconditionError(error.data());
  return std::unique_ptr<T>(made);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenCudaMemory(int index) {
  return Open<DeviceMemory>("hpo_open_cuda_memory", index);
}

absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenCudaLog(int index) {
  return Open<AllocatorLog>("hpo_open_cuda_log", index);
}

}  // namespace hpo::trainer
