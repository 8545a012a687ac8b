# The one list of what is installed: `cmake --install BUILD --prefix DIR [--component NAME]`.
# scripts/package makes an archive of it, scripts/wheel a wheel of its parts.
#
#   programs   hpo, hpo-server, hpo-worker, hpo-command-trainer, hpo-sampler, and in lib/hpo the
#              libraries that they load
#   python     the package hpo, in lib/hpo/python
#   trainer    hpo-trainer and its CUDA module; LibTorch is found at run time
#   checks     what a machine with a card is checked by, and what makes data and fetches a model
#   documents  manual and examples
#   licences   of everything that is in the programs or beside them

# What every system has, the C library's parts above all; and torch, which brings its own.
set(hpo_not_ours
  "^(linux-vdso|ld-linux-x86-64|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libanl|libutil|libnsl)\\.so"
  "^lib(stdc\\+\\+|gcc_s)\\.so"
  "^lib(torch|c10|cu[a-z]|nv)")

set(hpo_installed_programs hpo hpo-server hpo-worker hpo-command-trainer hpo-sampler)
# All of them in bin/, for a build that runs where it was built. By this name and not by their own: where
# hpo_one_program is built, whose file is called hpo too, ninja takes `hpo` for that file.
add_custom_target(programs)
add_dependencies(programs ${hpo_installed_programs})
if(TARGET hpo-trainer)
  add_dependencies(programs hpo-trainer)
endif()
if(HPO_STATIC_DEPENDENCIES)
  # Most of what they hold is the same: one file is all of them (cli/program/one_program.cc).
  add_executable(hpo_one_program cli/program/one_program.cc cli/program/main.cc sampler/proposer/main.cc server/main.cc
                                 worker/agent/main.cc worker/command/main.cc)
  set_source_files_properties(cli/program/main.cc PROPERTIES COMPILE_DEFINITIONS main=HpoMain)
  set_source_files_properties(sampler/proposer/main.cc
    PROPERTIES COMPILE_DEFINITIONS main=HpoSamplerMain)
  set_source_files_properties(server/main.cc PROPERTIES COMPILE_DEFINITIONS main=HpoServerMain)
  set_source_files_properties(worker/agent/main.cc PROPERTIES COMPILE_DEFINITIONS main=HpoWorkerMain)
  set_source_files_properties(worker/command/main.cc
    PROPERTIES COMPILE_DEFINITIONS main=HpoCommandTrainerMain)
  target_include_directories(hpo_one_program PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(hpo_one_program PRIVATE
    hpo_agent hpo_cli hpo_command hpo_command_line hpo_coordinator hpo_sampler)
  set_target_properties(hpo_one_program PROPERTIES
    OUTPUT_NAME hpo RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/one_program)
  hpo_warnings(hpo_one_program)
  set(hpo_installed_programs hpo_one_program)
  foreach(alias IN ITEMS hpo-server hpo-worker hpo-command-trainer hpo-sampler)
    install(PROGRAMS ${CMAKE_SOURCE_DIR}/scripts/packaged_alias
      DESTINATION bin RENAME ${alias} COMPONENT programs)
  endforeach()
endif()
install(TARGETS ${hpo_installed_programs}
  RUNTIME_DEPENDENCY_SET hpo_programs
  RUNTIME DESTINATION bin COMPONENT programs)
install(RUNTIME_DEPENDENCY_SET hpo_programs
  PRE_EXCLUDE_REGEXES ${hpo_not_ours}
  LIBRARY DESTINATION lib/hpo COMPONENT programs)

file(GLOB hpo_python_modules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/hpo/*.py)
install(FILES ${hpo_python_modules} ${CMAKE_SOURCE_DIR}/python/src/hpo/py.typed
              ${CMAKE_BINARY_DIR}/python/hpo/protocol.desc
  DESTINATION lib/hpo/python/hpo COMPONENT python)
file(GLOB hpo_optuna_modules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/hpo/optuna/*.py)
install(FILES ${hpo_optuna_modules} DESTINATION lib/hpo/python/hpo/optuna COMPONENT python)
file(GLOB hpo_notebook_modules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/hpo/notebook/*.py)
install(FILES ${hpo_notebook_modules} DESTINATION lib/hpo/python/hpo/notebook COMPONENT python)
file(GLOB hpo_ray_modules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/hpo/ray/*.py)
install(FILES ${hpo_ray_modules} DESTINATION lib/hpo/python/hpo/ray COMPONENT python)

if(TARGET hpo-trainer)
  install(TARGETS hpo-trainer hpo_cuda
    RUNTIME_DEPENDENCY_SET hpo_trainer
    RUNTIME DESTINATION libexec COMPONENT trainer
    LIBRARY DESTINATION lib COMPONENT trainer)
  install(RUNTIME_DEPENDENCY_SET hpo_trainer
    PRE_EXCLUDE_REGEXES ${hpo_not_ours}
    LIBRARY DESTINATION lib/hpo COMPONENT trainer)
  install(PROGRAMS ${CMAKE_SOURCE_DIR}/scripts/packaged_trainer
    DESTINATION bin RENAME hpo-trainer COMPONENT trainer)
endif()

install(PROGRAMS
    ${CMAKE_SOURCE_DIR}/scripts/prepare_criteria_data ${CMAKE_SOURCE_DIR}/scripts/fetch_minilm
    ${CMAKE_SOURCE_DIR}/scripts/gpu_check ${CMAKE_SOURCE_DIR}/scripts/gpu_memory_suite
  DESTINATION bin COMPONENT checks)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/scripts/gpu_checks DESTINATION share COMPONENT checks
  FILES_MATCHING PATTERN "*.py")

set(hpo_documents share/doc/hpo)
install(FILES README.md CHANGELOG.md LICENSE THIRD_PARTY.md
  DESTINATION ${hpo_documents} COMPONENT documents)
install(DIRECTORY docs examples DESTINATION ${hpo_documents} COMPONENT documents
  PATTERN "__pycache__" EXCLUDE)

# The distribution keeps each package's licence with the package.
foreach(package IN ITEMS
    libabsl-dev libboost-dev libbrotli-dev libc-ares-dev libcli11-dev libcpp-httplib-dev libeigen3-dev libfmt-dev
    libgrpc-dev libprotobuf-dev libre2-dev libspdlog-dev libsqlite3-dev libssl-dev
    libutf8proc-dev libyaml-cpp-dev nlohmann-json3-dev zlib1g-dev)
  install(FILES /usr/share/doc/${package}/copyright
    DESTINATION ${hpo_documents}/licences RENAME ${package} COMPONENT licences)
endforeach()
install(FILES LICENSE DESTINATION ${hpo_documents}/licences RENAME hpo COMPONENT licences)

# An RPATH rather than a RUNPATH: it also leads the libraries in lib/hpo to each other.
foreach(program IN LISTS hpo_installed_programs)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
