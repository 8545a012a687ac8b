// cuDNN's graph API: convolutions, and attention. A descriptor keeps what is set on it; plans
// compute nothing. Its types are void* and int here (library_call.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "emulator/cudnn/backend_descriptor.h"
#include "emulator/cudnn/engines.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

BackendDescriptor& Find(const char* call, const void* descriptor) {
  return LiveObjects<BackendDescriptor>().Find(call, descriptor);
}

// Ends the program, naming all of it, if the attribute is not one of the descriptor's.
void CheckAttribute(const char* call, const DescriptorContent& content, int attribute, int type) {
  const DescriptorKind& kind = content.kind();
  if (attribute < kind.first_attribute || attribute > kind.last_attribute) {
    hpoEmulatedMissing(content.Name(call, attribute).c_str());
  }
  if (AttributeTypeBytes(type) == 0) {
    hpoEmulatedMissing(
        (content.Name(call, attribute) + " with attribute type " + std::to_string(type)).c_str());
  }
}

// What a program asks for: room for `room` elements of a type.
struct Request {
  int attribute;
  int type;
  int64_t room;
  int64_t* count;  // may be null
  void* elements;  // may be null

  int64_t NumWanted(int64_t available) const {
    if (count != nullptr) *count = available;
    return elements == nullptr ? 0 : std::min(room, available);
  }
};

void AnswerNumber(const Request& request, int64_t number) {
  if (request.NumWanted(1) < 1) return;
  if (AttributeTypeBytes(request.type) == sizeof number) {
    std::memcpy(request.elements, &number, sizeof number);
  } else {
    const int small = static_cast<int>(number);
    std::memcpy(request.elements, &small, AttributeTypeBytes(request.type));
  }
}

// Descriptors are answered into descriptors that the program has made.
void AnswerDescriptor(const Request& request, int64_t index, const DescriptorContent& content) {
  void* answered = nullptr;
  std::memcpy(&answered, static_cast<char*>(request.elements) + index * sizeof answered,
              sizeof answered);
  Find("cudnnBackendGetAttribute", answered).content = std::make_shared<DescriptorContent>(content);
}

void AnswerStored(const Request& request, const DescriptorContent& content) {
  const AttributeValue* const value = content.Find(request.attribute);
  if (value == nullptr) {
    hpoEmulatedMissing(
        (content.Name("cudnnBackendGetAttribute", request.attribute) + ", which was not set,")
            .c_str());
  }
  const int64_t wanted = request.NumWanted(value->count);
  for (int64_t i = 0; i < wanted && !value->descriptors.empty(); ++i) {
    AnswerDescriptor(request, i, *value->descriptors[static_cast<size_t>(i)]);
  }
  if (value->descriptors.empty() && wanted > 0) {
    std::memcpy(request.elements, value->bytes.data(),
                static_cast<size_t>(wanted) * AttributeTypeBytes(value->type));
  }
}

void AnswerHeuristics(const Request& request, const DescriptorContent& heuristics) {
  const auto& graph = heuristics.Child(kEngineHeuristicGraph);
  const int64_t wanted = request.NumWanted(NumEngines(*graph));
  for (int64_t i = 0; i < wanted; ++i) {
    DescriptorContent config(*FindDescriptorKind(kEngineConfig));
    config.Set(
        kConfigEngine,
        {.type = kTypeDescriptor, .count = 1, .bytes = {}, .descriptors = {MakeEngine(graph, i)}});
    AnswerDescriptor(request, i, config);
  }
}

// What is computed of a descriptor instead of being kept in it; nothing if it is none of that.
std::optional<int64_t> ComputedNumber(const DescriptorContent& content, int attribute) {
  switch (attribute) {
    case kGraphEngineCount:
      return NumEngines(content);
    case kGraphHasDynamicShapes:
    case kConfigSharedMemoryBytes:
      return 0;
    case kConfigWorkspaceBytes:
      return EngineWorkspaceBytes(*content.Child(kConfigEngine));
    case kPlanWorkspaceBytes:
      return EngineWorkspaceBytes(*content.Child(kPlanConfig)->Child(kConfigEngine));
    default:
      return std::nullopt;
  }
}

void Answer(const Request& request, const DescriptorContent& content) {
  switch (request.attribute) {
    case kEngineHeuristicResults:
      AnswerHeuristics(request, content);
      return;
    case kEngineKnobInfo:
    case kEngineNumericalNotes:
    case kEngineBehaviorNotes:
    case kConfigKnobChoices:
      request.NumWanted(0);
      return;
    default:
      break;
  }
  if (const auto number = ComputedNumber(content, request.attribute); number.has_value()) {
    AnswerNumber(request, *number);
  } else {
    AnswerStored(request, content);
  }
}

AttributeValue ReadValue(int type, int64_t count, const void* elements) {
  AttributeValue value{.type = type, .count = count, .bytes = {}, .descriptors = {}};
  const size_t bytes = static_cast<size_t>(count) * AttributeTypeBytes(type);
  if (type == kTypeDescriptor) {
    const void* const* const descriptors = static_cast<const void* const*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      value.descriptors.push_back(Find("cudnnBackendSetAttribute", descriptors[i]).content);
    }
  } else if (bytes > 0) {
    const auto* const first = static_cast<const std::byte*>(elements);
    value.bytes.assign(first, first + bytes);
  }
  return value;
}

void CheckKind(const char* call, const void* descriptor, int kind) {
  const DescriptorKind& given = Find(call, descriptor).content->kind();
  if (given.number != kind) {
    hpoEmulatedMissing((std::string(call) + " of a " + given.name).c_str());
  }
}

}  // namespace

extern "C" {

int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  HPO_LIBRARY_CALL(cudnnBackendCreateDescriptor);
  const DescriptorKind* const known = FindDescriptorKind(kind);
  if (known == nullptr) {
    hpoEmulatedMissing(
        ("cudnnBackendCreateDescriptor of descriptor type " + std::to_string(kind)).c_str());
  }
  *descriptor = LiveObjects<BackendDescriptor>().Create(*known);
  return kSuccess;
}

int cudnnBackendDestroyDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnBackendDestroyDescriptor);
  LiveObjects<BackendDescriptor>().Destroy("cudnnBackendDestroyDescriptor", descriptor);
  return kSuccess;
}

int cudnnBackendFinalize(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnBackendFinalize);
  Find("cudnnBackendFinalize", descriptor);
  return kSuccess;
}

int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count,
                             const void* elements) {
  HPO_LIBRARY_CALL(cudnnBackendSetAttribute);
  DescriptorContent& content = *Find("cudnnBackendSetAttribute", descriptor).content;
  CheckAttribute("cudnnBackendSetAttribute", content, attribute, type);
  content.Set(attribute, ReadValue(type, count, elements));
  return kSuccess;
}

int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t room,
                             int64_t* count, void* elements) {
  HPO_LIBRARY_CALL(cudnnBackendGetAttribute);
  // Kept alive: the answer may go to a descriptor that holds this content.
  const auto content = Find("cudnnBackendGetAttribute", descriptor).content;
  CheckAttribute("cudnnBackendGetAttribute", *content, attribute, type);
  Answer({attribute, type, room, count, elements}, *content);
  return kSuccess;
}

int cudnnBackendExecute(void*, void* plan, void* pack) {
  HPO_COMPUTE_CALL(cudnnBackendExecute);
  CheckKind("cudnnBackendExecute", plan, kExecutionPlan);
  CheckKind("cudnnBackendExecute", pack, kVariantPack);
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
