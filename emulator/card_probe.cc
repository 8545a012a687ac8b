// What LibTorch makes of the card that it meets, one line a fact: for tests of the emulated card.
//   card_probe cards         every card as torch sees it, and the attention that it takes
//   card_probe fill N        fills card N until torch says that it is full
//   card_probe steps COUNT   as many small training steps on card 0
//   card_probe hold MIB      holds as much of card 0 until its input ends
//   card_probe unknown       a call of a library that is not emulated
// Ends with 0, or with 3 after one line about an error of torch's.
#include <ATen/ATen.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int kTorchError = 3;

at::TensorOptions On(int device) {
  return at::TensorOptions().device(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device)));
}

// Which of torch's kernels training takes, in the order of its SDPBackend.
std::string Attention(int device, at::ScalarType type, bool masked) {
  const at::Tensor query = at::zeros({2, 2, 16, 64}, On(device).dtype(type)).requires_grad_();
  std::optional<at::Tensor> mask;
  if (masked) mask = at::zeros({2, 1, 16, 16}, query.options()).expand({2, 2, 16, 16});
  const char* const names[] = {"math", "flash", "efficient", "cudnn"};
  const int64_t choice = at::_fused_sdp_choice(query, query, query, mask, 0.1);
  return choice >= 0 && choice < 4 ? names[choice] : "other";
}

// A call of cuBLAS that torch's libraries name and never make.
void CallUnknown() {
  void* const call = dlsym(RTLD_DEFAULT, "cublasIsamax_v2");
  if (call != nullptr) reinterpret_cast<int (*)()>(call)();
}

void DescribeCards() {
  for (int device = 0; device < c10::cuda::device_count(); ++device) {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    cudaDeviceProp card{};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&card, device));
    size_t free = 0;
    size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    std::printf(
        "card %d: %s; %d.%d; %d x %d threads; shared %zu %zu; L2 %d; total %zu %zu; free %zu\n",
        device, card.name, card.major, card.minor, card.multiProcessorCount,
        card.maxThreadsPerMultiProcessor, card.sharedMemPerMultiprocessor,
        card.sharedMemPerBlockOptin, card.l2CacheSize, card.totalGlobalMem, total, free);
    std::printf("attention %d:", device);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const bool masked : {false, true}) {
        std::printf(" %s", Attention(device, type, masked).c_str());
      }
    }
    std::printf("\n");
  }
}

void Fill(int device) {
  std::vector<at::Tensor> held;
  try {
    while (true) held.push_back(at::empty({64 * kMiB}, On(device).dtype(at::kByte)));
  } catch (const c10::OutOfMemoryError& error) {
    std::printf("out of memory after %zu MiB\n%s\n", held.size() * 64,
                error.what_without_backtrace());
  }
  held.clear();
  c10::cuda::CUDACachingAllocator::emptyCache();
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  std::printf("reserved %ld\n", static_cast<long>(stats.reserved_bytes[0].current));
}

// With a sort, whose kernels are looked up by architecture.
void Step() {
  const at::Tensor weight = at::ones({256, 256}, On(0)).requires_grad_();
  at::linear(at::ones({64, 256}, On(0)), weight).sum().backward();
  at::sort(at::rand({100000}, On(0)));
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

void Hold(int64_t mib) {
  const at::Tensor held = at::empty({mib * kMiB}, On(0).dtype(at::kByte));
  std::printf("holding\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
}

void Run(const std::string& what, int64_t number) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  if (what == "cards") DescribeCards();
  if (what == "fill") Fill(static_cast<int>(number));
  if (what == "hold") Hold(number);
  if (what == "unknown") CallUnknown();
  if (what == "steps") {
    for (int64_t step = 0; step < number; ++step) {
      Step();
      std::printf("step %ld\n", static_cast<long>(step + 1));
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(argc > 1 ? argv[1] : "cards", argc > 2 ? std::atol(argv[2]) : 0);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    std::printf("error: %s\n", text.substr(0, text.find('\n')).c_str());
    return kTorchError;
  }
  return 0;
}
