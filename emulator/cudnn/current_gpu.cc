#include "emulator/cudnn/current_gpu.h"

#include "emulator/machine.h"

extern "C" __attribute__((weak)) int cudaGetDevice(int* device);

namespace hpo::emulator::cudnn {

const Card& CurrentGpu() {
  int device = 0;
  if (cudaGetDevice != nullptr) cudaGetDevice(&device);
  return Machine::Get().card(device);
}

}  // namespace hpo::emulator::cudnn
