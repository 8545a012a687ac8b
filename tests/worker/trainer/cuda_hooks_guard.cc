// A library to preload into any of our programs. It ends the program, with the stack that asked,
// when torch's CUDA hooks are asked for before libtorch_cuda is loaded (docs/adr/001): torch keeps
// its first answer, so the process could never use a card. It needs neither CUDA nor a card.
#include <ATen/detail/CUDAHooksInterface.h>
#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

// What libtorch_cuda registers has a higher priority, so torch gets here only without it.
std::unique_ptr<at::CUDAHooksInterface> EndTheProgram(at::CUDAHooksArgs) {
  std::fprintf(stderr, "torch's CUDA hooks were asked for before libtorch_cuda was loaded, by\n");
  std::array<void*, 64> frames;
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), frames.size()), STDERR_FILENO);
  std::abort();
}

}  // namespace

namespace at {
C10_REGISTER_CREATOR_WITH_PRIORITY(CUDAHooksRegistry, CUDAHooks, c10::REGISTRY_FALLBACK,
                                   EndTheProgram);
}  // namespace at
