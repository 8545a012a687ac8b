#include "worker/trainer/memory/cuda_module.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

std::string ModulePath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib" / "hpo_cuda.so").string();
}

absl::StatusOr<OpenCudaMemoryFunction> LoadModule() {
  const std::string path = ModulePath();
  // RTLD_GLOBAL: torch's CUDA libraries register their kernels with the libtorch_cpu that is there.
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load torch's CUDA libraries: ", ::dlerror(),
                     " (expected a CUDA build of torch in HPO_TORCH_ROOT; or use --device cpu)"));
  }
  void* const symbol = ::dlsym(module, "hpo_open_cuda_memory");
  if (symbol == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a module of this program"));
  }
  return reinterpret_cast<OpenCudaMemoryFunction>(symbol);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenCudaMemory(int index) {
  static const absl::StatusOr<OpenCudaMemoryFunction> open = LoadModule();
  if (!open.ok()) return open.status();
  std::array<char, 1024> error{};
  DeviceMemory* const memory = (*open)(index, error.data(), error.size());
  if (memory == nullptr) return absl::FailedPreconditionError(error.data());
  return std::unique_ptr<DeviceMemory>(memory);
}

}  // namespace hpo
