#include "emulator/cudnn/built_with.h"

#include <link.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace hpo::emulator::cudnn {
namespace {

constexpr size_t kOfTorch211 = 91900;
constexpr std::string_view kTorchLibrary = "/torch/lib/libtorch_cuda.so";

int AddFolder(dl_phdr_info* library, size_t, void* packages) {
  const std::string_view path = library->dlpi_name;
  if (!path.ends_with(kTorchLibrary)) return 0;
  *static_cast<std::string*>(packages) = path.substr(0, path.size() - kTorchLibrary.size());
  return 1;
}

// The folder with the packages of Python that torch is one of. Empty where torch is not loaded.
std::string PackagesFolder() {
  std::string folder;
  dl_iterate_phdr(AddFolder, &folder);
  return folder;
}

std::string ReadMetadata(const std::string& packages) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(packages, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("torch-") || !name.ends_with(".dist-info")) continue;
    std::ifstream file(entry.path() / "METADATA");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return {};
}

}  // namespace

size_t RequiredVersion(std::string_view metadata) {
  constexpr std::string_view kRequirement = "Requires-Dist: nvidia-cudnn-cu";
  size_t at = metadata.find(kRequirement);
  if (at == std::string_view::npos) return 0;
  at = metadata.find("==", at);
  if (at == std::string_view::npos) return 0;
  const char* next = metadata.data() + at + 2;
  const char* const end = metadata.data() + metadata.size();
  size_t version = 0;
  for (int part = 0; part < 3; ++part) {
    size_t number = 0;
    const auto parsed = std::from_chars(next, end, number);
    if (parsed.ec != std::errc()) return 0;
    version = version * 100 + number;
    next = parsed.ptr == end ? end : parsed.ptr + 1;  // after the point
  }
  return version;
}

size_t VersionOfTorch() {
  static const size_t version = [] {
    const std::string packages = PackagesFolder();
    const size_t required = packages.empty() ? 0 : RequiredVersion(ReadMetadata(packages));
    return required == 0 ? kOfTorch211 : required;
  }();
  return version;
}

}  // namespace hpo::emulator::cudnn
