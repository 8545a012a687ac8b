// The objects of the emulated cuDNN that a program holds by an address: handles and descriptors.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "emulator/machine.h"

namespace hpo::emulator::cudnn {

// Owns every object of one kind from its creation to its destruction. Safe for threads; an object
// itself belongs to the caller, as in cuDNN.
template <typename Object>
class Handles {
 public:
  template <typename... Arguments>
  void* Create(Arguments&&... arguments) {
    auto object = std::make_unique<Object>(std::forward<Arguments>(arguments)...);
    void* const address = object.get();
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.emplace(address, std::move(object));
    return address;
  }

  // Ends the program with the call's name if `address` is not a live object of this kind.
  Object& Find(const char* call, const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(address);
    if (found == objects_.end()) EndWithoutObject(call);
    return *found->second;
  }

  // Ends the program with the call's name if `address` is not a live object of this kind.
  void Destroy(const char* call, const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (objects_.erase(address) == 0) EndWithoutObject(call);
  }

  size_t size() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return objects_.size();
  }

 private:
  [[noreturn]] static void EndWithoutObject(const char* call) {
    hpoEmulatedMissing((std::string(call) + " of an object that does not exist").c_str());
  }

  std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<Object>> objects_;
};

// All objects of one kind. Never destroyed: torch destroys its descriptors after main.
template <typename Object>
Handles<Object>& LiveObjects() {
  static auto* const objects = new Handles<Object>;
  return *objects;
}

}  // namespace hpo::emulator::cudnn
