#include "emulator/cudnn/backend_descriptor.h"

#include <cstring>

#include "emulator/machine.h"

namespace hpo::emulator::cudnn {

const AttributeValue* DescriptorContent::Find(int attribute) const {
  const auto found = values_.find(attribute);
  return found == values_.end() ? nullptr : &found->second;
}

const AttributeValue& DescriptorContent::Get(int attribute) const {
  const AttributeValue* const value = Find(attribute);
  if (value == nullptr || value->count == 0) {
    hpoEmulatedMissing((Name("use", attribute) + ", which was not set,").c_str());
  }
  return *value;
}

const std::shared_ptr<const DescriptorContent>& DescriptorContent::Child(int attribute) const {
  const AttributeValue& value = Get(attribute);
  if (value.descriptors.empty()) {
    hpoEmulatedMissing((Name("use", attribute) + " that is no descriptor").c_str());
  }
  return value.descriptors.front();
}

std::vector<int64_t> DescriptorContent::Integers(int attribute) const {
  const AttributeValue& value = Get(attribute);
  if (value.type != kTypeInt64) {
    hpoEmulatedMissing((Name("use", attribute) + " that is no int64").c_str());
  }
  std::vector<int64_t> integers(static_cast<size_t>(value.count));
  std::memcpy(integers.data(), value.bytes.data(), value.bytes.size());
  return integers;
}

int DescriptorContent::Number(int attribute) const {
  const AttributeValue& value = Get(attribute);
  int number = 0;
  if (value.bytes.size() != sizeof number) {
    hpoEmulatedMissing((Name("use", attribute) + " that is no number of 32 bits").c_str());
  }
  std::memcpy(&number, value.bytes.data(), sizeof number);
  return number;
}

std::string DescriptorContent::Name(const char* call, int attribute) const {
  return std::string(call) + " of attribute " + std::to_string(attribute) + " of " + kind_->name;
}

}  // namespace hpo::emulator::cudnn
