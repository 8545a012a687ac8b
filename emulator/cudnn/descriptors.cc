#include "emulator/cudnn/descriptors.h"

#include <algorithm>
#include <cstddef>

#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

// What is set on these is never asked for.
struct ActivationDescriptor {};
struct PoolingDescriptor {};
struct SpatialTransformerDescriptor {};

void CopyOut(const std::vector<int>& values, int room, int* out) {
  const auto wanted = std::min(values.size(), static_cast<size_t>(std::max(room, 0)));
  std::copy_n(values.begin(), wanted, out);
}

}  // namespace

std::vector<int> PackedStrides(const std::vector<int>& sizes) {
  std::vector<int> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * sizes[i - 1];
  return strides;
}

extern "C" {

int cudnnCreateTensorDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateTensorDescriptor);
  *descriptor = LiveObjects<TensorDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyTensorDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyTensorDescriptor);
  LiveObjects<TensorDescriptor>().Destroy("cudnnDestroyTensorDescriptor", descriptor);
  return kSuccess;
}

int cudnnSetTensorNdDescriptor(void* descriptor, int data_type, int num_dimensions,
                               const int* sizes, const int* strides) {
  HPO_LIBRARY_CALL(cudnnSetTensorNdDescriptor);
  LiveObjects<TensorDescriptor>().Find("cudnnSetTensorNdDescriptor", descriptor) = {
      .data_type = data_type,
      .sizes = {sizes, sizes + num_dimensions},
      .strides = {strides, strides + num_dimensions}};
  return kSuccess;
}

int cudnnGetTensorNdDescriptor(const void* descriptor, int room, int* data_type,
                               int* num_dimensions, int* sizes, int* strides) {
  HPO_LIBRARY_CALL(cudnnGetTensorNdDescriptor);
  const TensorDescriptor& tensor =
      LiveObjects<TensorDescriptor>().Find("cudnnGetTensorNdDescriptor", descriptor);
  *data_type = tensor.data_type;
  *num_dimensions = static_cast<int>(tensor.sizes.size());
  CopyOut(tensor.sizes, room, sizes);
  CopyOut(tensor.strides, room, strides);
  return kSuccess;
}

int cudnnCreateFilterDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateFilterDescriptor);
  *descriptor = LiveObjects<FilterDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyFilterDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyFilterDescriptor);
  LiveObjects<FilterDescriptor>().Destroy("cudnnDestroyFilterDescriptor", descriptor);
  return kSuccess;
}

int cudnnSetFilterNdDescriptor(void* descriptor, int data_type, int format, int num_dimensions,
                               const int* sizes) {
  HPO_LIBRARY_CALL(cudnnSetFilterNdDescriptor);
  LiveObjects<FilterDescriptor>().Find("cudnnSetFilterNdDescriptor", descriptor) = {
      .data_type = data_type, .format = format, .sizes = {sizes, sizes + num_dimensions}};
  return kSuccess;
}

int cudnnGetFilterNdDescriptor(const void* descriptor, int room, int* data_type, int* format,
                               int* num_dimensions, int* sizes) {
  HPO_LIBRARY_CALL(cudnnGetFilterNdDescriptor);
  const FilterDescriptor& filter =
      LiveObjects<FilterDescriptor>().Find("cudnnGetFilterNdDescriptor", descriptor);
  *data_type = filter.data_type;
  *format = filter.format;
  *num_dimensions = static_cast<int>(filter.sizes.size());
  CopyOut(filter.sizes, room, sizes);
  return kSuccess;
}

int cudnnCreateActivationDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateActivationDescriptor);
  *descriptor = LiveObjects<ActivationDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyActivationDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyActivationDescriptor);
  LiveObjects<ActivationDescriptor>().Destroy("cudnnDestroyActivationDescriptor", descriptor);
  return kSuccess;
}

// Torch's quantised pooling makes one for each call and never destroys it.
int cudnnCreatePoolingDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreatePoolingDescriptor);
  *descriptor = LiveObjects<PoolingDescriptor>().Create();
  return kSuccess;
}

int cudnnCreateSpatialTransformerDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateSpatialTransformerDescriptor);
  *descriptor = LiveObjects<SpatialTransformerDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroySpatialTransformerDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroySpatialTransformerDescriptor);
  LiveObjects<SpatialTransformerDescriptor>().Destroy("cudnnDestroySpatialTransformerDescriptor",
                                                      descriptor);
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
