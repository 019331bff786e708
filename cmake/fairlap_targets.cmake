# How every target of the engine is compiled, said once.

find_package(Threads REQUIRED)

function(fairlap_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  if(FAIRLAP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FAIRLAP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
    target_link_options(${target} PRIVATE -fsanitize=${FAIRLAP_SANITIZE})
  endif()
endfunction()

# Under a sanitizer, what is not the engine itself is compiled as it stands: that halves the time it takes.
function(fairlap_compile_quickly target)
  if(FAIRLAP_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# One folder of the engine is one static library; headers are included as "folder/file.hpp".
function(fairlap_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(fairlap_${name} STATIC ${ARG_SOURCES})
  target_include_directories(fairlap_${name} PUBLIC ${PROJECT_SOURCE_DIR}/cpp)
  target_link_libraries(fairlap_${name} PUBLIC ${ARG_USES} Threads::Threads ${CMAKE_DL_LIBS})
  fairlap_compile_options(fairlap_${name})
endfunction()

# One test file is one program, so that one crash cannot hide another test's result.
function(fairlap_test name)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_USES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cpp)
  fairlap_compile_options(${name})
  fairlap_compile_quickly(${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
