// Recurrent networks. What they compute is silent (make_libraries.py).
#include <cstddef>
#include <cstdint>

#include "emulator/cudnn/descriptors.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/cudnn/rnn_layout.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

constexpr int kBidirectional = 1;  // cudnnDirectionMode_t
constexpr int kTraining = 1;       // cudnnForwardMode_t

struct RnnDescriptor {
  int data_type = 0;
  RnnShape shape;
};

struct RnnDataDescriptor {
  int max_steps = 0;
  int batch = 0;
};

RnnDescriptor& FindRnn(const char* call, const void* descriptor) {
  return LiveObjects<RnnDescriptor>().Find(call, descriptor);
}

// Vectors for each gate, by cudnnRNNBiasMode_t: none, of the input, both, of the state.
int64_t NumBiasVectors(int mode) {
  constexpr int64_t kVectors[] = {0, 1, 2, 1};
  if (mode < 0 || mode > 3) hpoEmulatedMissing("cudnnSetRNNDescriptor_v8 with another bias mode");
  return kVectors[mode];
}

RnnCell Cell(int mode) {
  if (mode < 0 || mode > 3) hpoEmulatedMissing("cudnnSetRNNDescriptor_v8 with another cell");
  return static_cast<RnnCell>(mode);
}

// Where a part is in the weights, and its descriptor of three dimensions.
void AnswerPart(const RnnDescriptor& rnn, const RnnPart& part, const void* weights,
                void* descriptor, void** address) {
  if (address == nullptr) return;
  *address = nullptr;
  if (part.rows == 0) return;
  const auto bytes = static_cast<int64_t>(ElementBytes("cudnnGetRNNWeightParams", rnn.data_type));
  *address = const_cast<char*>(static_cast<const char*>(weights)) + part.offset * bytes;
  if (descriptor == nullptr) return;
  TensorDescriptor& tensor =
      LiveObjects<TensorDescriptor>().Find("cudnnGetRNNWeightParams", descriptor);
  tensor.data_type = rnn.data_type;
  tensor.sizes = {1, static_cast<int>(part.rows), static_cast<int>(part.columns)};
  tensor.strides = PackedStrides(tensor.sizes);
}

}  // namespace

extern "C" {

int cudnnCreateRNNDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateRNNDescriptor);
  *descriptor = LiveObjects<RnnDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyRNNDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyRNNDescriptor);
  LiveObjects<RnnDescriptor>().Destroy("cudnnDestroyRNNDescriptor", descriptor);
  return kSuccess;
}

int cudnnSetRNNDescriptor_v8(void* descriptor, int /*algorithm*/, int cell, int bias_mode,
                             int direction, int /*input_mode*/, int data_type,
                             int /*math_precision*/, int /*math_type*/, int32_t input_size,
                             int32_t hidden_size, int32_t projection_size, int32_t layers,
                             void* /*dropout*/, uint32_t /*flags*/) {
  HPO_LIBRARY_CALL(cudnnSetRNNDescriptor_v8);
  FindRnn("cudnnSetRNNDescriptor_v8", descriptor) = {
      .data_type = data_type,
      .shape = {.cell = Cell(cell),
                .bias_vectors = NumBiasVectors(bias_mode),
                .directions = direction == kBidirectional ? 2 : 1,
                .input_size = input_size,
                .hidden_size = hidden_size,
                .projection_size = projection_size,
                .layers = layers}};
  return kSuccess;
}

int cudnnCreateRNNDataDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateRNNDataDescriptor);
  *descriptor = LiveObjects<RnnDataDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyRNNDataDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyRNNDataDescriptor);
  LiveObjects<RnnDataDescriptor>().Destroy("cudnnDestroyRNNDataDescriptor", descriptor);
  return kSuccess;
}

int cudnnSetRNNDataDescriptor(void* descriptor, int /*data_type*/, int /*layout*/, int max_steps,
                              int batch, int /*vector_size*/, const int* /*lengths*/,
                              void* /*padding*/) {
  HPO_LIBRARY_CALL(cudnnSetRNNDataDescriptor);
  LiveObjects<RnnDataDescriptor>().Find("cudnnSetRNNDataDescriptor", descriptor) = {
      .max_steps = max_steps, .batch = batch};
  return kSuccess;
}

int cudnnGetRNNWeightSpaceSize(void* /*handle*/, void* descriptor, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetRNNWeightSpaceSize);
  const RnnDescriptor& rnn = FindRnn("cudnnGetRNNWeightSpaceSize", descriptor);
  *bytes = static_cast<size_t>(RnnWeightElements(rnn.shape)) *
           ElementBytes("cudnnGetRNNWeightSpaceSize", rnn.data_type);
  return kSuccess;
}

int cudnnGetRNNWeightParams(void* /*handle*/, void* descriptor, int32_t pseudo_layer,
                            size_t /*bytes*/, const void* weights, int32_t number,
                            void* matrix_descriptor, void** matrix, void* bias_descriptor,
                            void** bias) {
  HPO_LIBRARY_CALL(cudnnGetRNNWeightParams);
  const RnnDescriptor& rnn = FindRnn("cudnnGetRNNWeightParams", descriptor);
  AnswerPart(rnn, RnnMatrix(rnn.shape, pseudo_layer, number), weights, matrix_descriptor, matrix);
  AnswerPart(rnn, RnnBias(rnn.shape, pseudo_layer, number), weights, bias_descriptor, bias);
  return kSuccess;
}

int cudnnGetRNNTempSpaceSizes(void* /*handle*/, void* descriptor, int mode, void* data,
                              size_t* workspace_bytes, size_t* reserve_bytes) {
  HPO_LIBRARY_CALL(cudnnGetRNNTempSpaceSizes);
  const RnnDescriptor& rnn = FindRnn("cudnnGetRNNTempSpaceSizes", descriptor);
  const RnnDataDescriptor& sequences =
      LiveObjects<RnnDataDescriptor>().Find("cudnnGetRNNTempSpaceSizes", data);
  const size_t element = ElementBytes("cudnnGetRNNTempSpaceSizes", rnn.data_type);
  if (workspace_bytes != nullptr) {
    *workspace_bytes =
        static_cast<size_t>(RnnWorkspaceElements(rnn.shape, sequences.batch)) * element;
  }
  if (reserve_bytes != nullptr) {
    const int64_t elements = RnnReserveElements(rnn.shape, sequences.max_steps, sequences.batch);
    *reserve_bytes = mode == kTraining ? static_cast<size_t>(elements) * element : 0;
  }
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
